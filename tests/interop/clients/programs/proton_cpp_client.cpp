// Qpid Proton for C++ on one connection, led by lines of the standard input; each is answered by a line.
//     connect URL MECHANISM USER PASSWORD SECONDS, attach ADDRESS, send ADDRESS HEX NUMBER, get ADDRESS, accept, modify, close
// NUMBER chooses the properties of a message, -1 none but durable; ``get`` answers with the number whose properties have come.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include <proton/codec/map.hpp>
#include <proton/connection.hpp>
#include <proton/connection_options.hpp>
#include <proton/container.hpp>
#include <proton/delivery.hpp>
#include <proton/message.hpp>
#include <proton/message_id.hpp>
#include <proton/messaging_handler.hpp>
#include <proton/receiver_options.hpp>
#include <proton/sender_options.hpp>
#include <proton/tracker.hpp>
#include <proton/transport.hpp>
#include <proton/uuid.hpp>
#include <proton/work_queue.hpp>

namespace {

const int SECONDS = 15;

std::string text(const char *head, int number) { return head + std::to_string(number); }

proton::uuid uuid_of(int number) {
    proton::uuid made;
    std::fill(made.begin(), made.end(), 0);
    made[14] = static_cast<uint8_t>(number >> 8);
    made[15] = static_cast<uint8_t>(number);
    return made;
}

void set_properties(proton::message &message, int number) {
    switch (number % 4) {
    case 0: message.id(text("id-", number)); break;
    case 1: message.id(static_cast<uint64_t>(number)); break;
    case 2: message.id(uuid_of(number)); break;
    default: message.id(proton::binary(std::to_string(number)));
    }
    message.user("guest");
    message.to(text("to", number));
    message.subject(text("s", number));
    message.reply_to(text("r", number));
    message.correlation_id(text("c", number));
    message.content_type("text/plain");
    message.content_encoding("utf-8");
    message.expiry_time(proton::timestamp(4000000000000 + number));
    message.creation_time(proton::timestamp(1000000000000 + number));
    message.group_id(text("g", number));
    message.group_sequence(number);
    message.reply_to_group_id(text("h", number));
    message.priority(5);
    auto &headers = message.properties();
    headers.put("text", text("t", number));
    headers.put("number", int32_t(number));
    headers.put("large", (int64_t(1) << 40) + number);
    headers.put("negative", int64_t(-1 - number));
    headers.put("true", true);
    headers.put("half", number + 0.5);
    headers.put("float", number + 0.25f);
    headers.put("octets", proton::binary(std::to_string(number)));
    headers.put("id", uuid_of(number));
    headers.put("time", proton::timestamp(1000000000000 + number));
    headers.put("byte", int8_t(number % 100));
    headers.put("none", proton::scalar());
}

// The number whose properties a message has; -1 if there is none.
int number_of(const proton::message &came) {
    int number = came.group_sequence();
    proton::message wanted;
    set_properties(wanted, number);
    bool same = came.id() == wanted.id() && came.user() == wanted.user() && came.to() == wanted.to() &&
                came.subject() == wanted.subject() && came.reply_to() == wanted.reply_to() &&
                came.correlation_id() == wanted.correlation_id() && came.content_type() == wanted.content_type() &&
                came.content_encoding() == wanted.content_encoding() && came.expiry_time() == wanted.expiry_time() &&
                came.creation_time() == wanted.creation_time() && came.group_id() == wanted.group_id() &&
                came.reply_to_group_id() == wanted.reply_to_group_id() && came.priority() == wanted.priority();
    auto all = [](const proton::message &message) {
        std::map<std::string, proton::scalar> found;
        proton::get(message.properties().value(), found);
        return found;
    };
    return same && all(came) == all(wanted) ? number : -1;
}

std::string from_hex(const std::string &hex) {
    std::string octets;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
        octets += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return octets;
}

std::string to_hex(const std::string &octets) {
    static const char *digits = "0123456789abcdef";
    std::string hex;
    for (unsigned char each : octets) {
        hex += digits[each >> 4];
        hex += digits[each & 15];
    }
    return hex;
}

class Client : public proton::messaging_handler {
  public:
    Client() : container_(*this), thread_([this] { container_.auto_stop(false); container_.run(); }) {}

    void run() {
        std::string line;
        while (std::getline(std::cin, line)) {
            try {
                std::string answer = obey(line);
                std::cout << "ok " << answer << std::endl;
            } catch (const std::exception &fault) {
                std::string what = fault.what();
                std::cout << "error " << what.substr(0, what.find('\n')) << std::endl;
            }
            if (line == "close") break;
        }
        container_.stop();
        thread_.join();
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::string fault_, outcome_, answer_;
    int attached_ = 0;
    bool opened_ = false, closed_ = false;
    std::map<std::string, proton::sender> senders_;
    std::map<std::string, proton::receiver> receivers_;
    proton::connection connection_;
    proton::delivery delivery_;
    proton::container container_;
    std::thread thread_;

    std::string obey(const std::string &line) {
        std::istringstream words(line);
        std::string verb, address;
        words >> verb >> address;
        if (verb == "connect") {
            std::string mechanism, user, password;
            int seconds;
            words >> mechanism >> user >> password >> seconds;
            proton::connection_options options;
            options.sasl_allowed_mechs(mechanism).sasl_allow_insecure_mechs(true);
            if (mechanism == "PLAIN") options.user(user).password(password);
            if (seconds) options.idle_timeout(proton::duration(seconds * 1000));
            container_.connect(address, options);
            wait([this] { return opened_; });
        } else if (verb == "attach") {
            attached_ = 0;
            inject([=] {
                senders_[address] = connection_.open_sender(address);
                receivers_[address] = connection_.open_receiver(
                    address, proton::receiver_options().credit_window(0).auto_accept(false));
            });
            wait([this] { return attached_ == 2; });
        } else if (verb == "send") {
            std::string hex;
            int number;
            words >> hex >> number;
            proton::message message;
            message.body(proton::binary(from_hex(hex)));
            message.durable(true);
            if (number >= 0) set_properties(message, number);
            outcome_.clear();
            inject([=] { senders_[address].send(message); });
            wait([this] { return !outcome_.empty(); });
            return outcome_;
        } else if (verb == "get") {
            answer_.clear();
            inject([=] { receivers_[address].add_credit(1); });
            wait([this] { return !answer_.empty(); });
            return answer_;
        } else if (verb == "accept") {
            inject([this] { delivery_.accept(); });
        } else if (verb == "modify") {
            inject([this] { delivery_.modify(); });
        } else if (verb == "close") {
            if (opened_ && fault_.empty()) {
                inject([this] { connection_.close(); });
                wait([this] { return closed_; });
            }
        }
        return "";
    }

    void inject(std::function<void()> work) { connection_.work_queue().add(work); }

    void wait(std::function<bool()> condition) {
        std::unique_lock<std::mutex> lock(mutex_);
        bool came = changed_.wait_for(lock, std::chrono::seconds(SECONDS), [&] { return condition() || !fault_.empty(); });
        if (!came) throw std::runtime_error("it does not come about");
        if (!condition()) throw std::runtime_error(fault_);
    }

    void change(std::function<void()> how) {
        std::lock_guard<std::mutex> lock(mutex_);
        how();
        changed_.notify_all();
    }

    void on_connection_open(proton::connection &connection) override {
        change([&] { connection_ = connection, opened_ = true; });
    }
    void on_connection_close(proton::connection &) override { change([&] { closed_ = true; }); }
    void on_sender_open(proton::sender &) override { change([&] { ++attached_; }); }
    void on_receiver_open(proton::receiver &) override { change([&] { ++attached_; }); }
    void on_tracker_accept(proton::tracker &) override { change([&] { outcome_ = "accepted"; }); }
    void on_tracker_reject(proton::tracker &) override { change([&] { outcome_ = "rejected"; }); }
    void on_tracker_release(proton::tracker &) override { change([&] { outcome_ = "released"; }); }
    void on_transport_close(proton::transport &) override { change([&] { if (!closed_ && fault_.empty()) fault_ = "the connection is lost"; }); }
    void on_error(const proton::error_condition &condition) override { change([&] { fault_ = condition.what(); }); }
    void on_message(proton::delivery &delivery, proton::message &message) override {
        change([&] {
            delivery_ = delivery;
            answer_ = to_hex(proton::get<proton::binary>(message.body())) + " " + std::to_string(number_of(message)) + " " +
                      std::to_string(message.delivery_count()) + " " + std::to_string(message.first_acquirer());
        });
    }
};

} // namespace

int main() {
    Client().run();
    return 0;
}
