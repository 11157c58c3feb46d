#!/bin/sh
# Install real peers into .peers (git-ignored), all at once, each by itself and only if it is not there yet:
#     tests/interop/install.sh [proton] [cyrus] [rhea] [rabbitmq4] [rabbitmq3] [azure] [uamqp] [rabbitmq-client] [pika] [amqplib] [java] [azure-js] [frameworks] [taskiq] [nameko] [http-clients] [clients-js] [bunny] [php-amqplib] [amqp-tools] [tshark] [chromium]      (default: all)
# For Debian 12. Packages come from apt, pip and npm as this machine has them configured. RabbitMQ goes into
# file trees of its own (debootstrap), so that no service of the host is installed, let alone started.
# PYTHON names the interpreter for proton's environment; it needs no package of this project.
set -u

root=$(cd "$(dirname "$0")/../.." && pwd)
peers=${PEERS:-$root/.peers}
python=${PYTHON:-python3}

say() { printf '%s\n' "$*" >&2; }

# one_at_a_time LOCK COMMAND...: while another peer's process does the same, wait.
one_at_a_time() {
    lock=$peers/.lock-$1
    shift
    (flock 9 && "$@") 9>"$lock"
}

# Once in each run.
apt_update() {
    one_at_a_time update sh -c '[ -e "$0" ] || { apt-get update -qq >&2 && touch "$0"; }' "$peers/.updated"
}

# apt_install PACKAGE...: only those that are missing; root only.
apt_install() {
    missing=
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
            missing="$missing $package"
    done
    [ -z "$missing" ] && return 0
    if [ "$(id -u)" != 0 ]; then
        say "needs root once, to run: apt-get install$missing"
        return 1
    fi
    apt_update || return 1
    # shellcheck disable=SC2086  # a list of words
    one_at_a_time apt env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >&2
}

# What pip needs to build Proton with TLS, and SASL beyond ANONYMOUS and PLAIN, and to make environments.
prepare_proton() {
    apt_install gcc libc6-dev pkg-config libssl-dev libsasl2-dev libsasl2-modules || return 1
    if ! "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))'; then
        apt_install python3-dev || return 1
    fi
    "$python" -c 'import ensurepip' 2>/dev/null || apt_install python3-venv
}

# build_proton: one wheel for all that need it. One that pip built and kept before the libraries were there would lack TLS
# and SASL, hence no cache of pip's.
build_proton() {
    ls "$peers/wheels"/python_qpid_proton-*.whl >/dev/null 2>&1 && return 0
    prepare_proton || return 1
    rm -rf "$peers/wheels.partial" "$peers/wheels" &&
        "$python" -m venv "$peers/wheels.partial" &&
        "$peers/wheels.partial/bin/python" -m pip wheel -q --no-cache-dir --no-deps --no-binary python-qpid-proton \
            --wheel-dir "$peers/wheels.partial" python-qpid-proton==0.40.0 >&2 &&
        mkdir "$peers/wheels" &&
        mv "$peers/wheels.partial"/*.whl "$peers/wheels" &&
        rm -rf "$peers/wheels.partial"
}

install_proton() {
    "$peers/proton/bin/python" -c 'import proton' 2>/dev/null && return 0
    one_at_a_time proton build_proton || return 1
    rm -rf "$peers/proton"
    "$python" -m venv "$peers/proton" &&
        "$peers/proton/bin/python" -m pip install -q --no-compile --no-cache-dir "$peers/wheels"/python_qpid_proton-*.whl >&2 &&
        "$peers/proton/bin/python" -c 'import proton'
}

# RabbitMQ's client for AMQP 1.0, which is built on Proton.
install_rabbitmq_client() {
    "$peers/rabbitmq-client/bin/python" -c 'import rabbitmq_amqp_python_client' 2>/dev/null && return 0
    one_at_a_time proton build_proton || return 1
    rm -rf "$peers/rabbitmq-client"
    "$python" -m venv "$peers/rabbitmq-client" &&
        "$peers/rabbitmq-client/bin/python" -m pip install -q --no-compile --no-cache-dir \
            "$peers/wheels"/python_qpid_proton-*.whl rabbitmq-amqp-python-client==1.0.1 >&2 &&
        "$peers/rabbitmq-client/bin/python" -c 'import rabbitmq_amqp_python_client'
}

# Clients of AMQP 0-9-1.
install_pika() {
    "$peers/pika/bin/python" -c 'import pika, aio_pika, kombu, celery' 2>/dev/null && return 0
    rm -rf "$peers/pika"
    "$python" -m venv "$peers/pika" &&
        "$peers/pika/bin/python" -m pip install -q --no-compile --no-cache-dir --only-binary :all: pika aio-pika kombu celery >&2 &&
        "$peers/pika/bin/python" -c 'import pika, aio_pika, kombu, celery'
}

# What is built on them: Celery, and two smaller ones.
install_frameworks() {
    "$peers/frameworks/bin/python" -c 'import celery, dramatiq, faststream.rabbit' 2>/dev/null && return 0
    rm -rf "$peers/frameworks"
    "$python" -m venv "$peers/frameworks" &&
        "$peers/frameworks/bin/python" -m pip install -q --no-compile --no-cache-dir --only-binary :all: \
            celery 'dramatiq[rabbitmq]' 'faststream[rabbit]' >&2 &&
        "$peers/frameworks/bin/python" -c 'import celery, dramatiq, faststream.rabbit'
}

# Taskiq on aio-pika, and nameko, which needs versions of its own.
install_taskiq() {
    "$peers/taskiq/bin/python" -c 'import taskiq_aio_pika' 2>/dev/null && return 0
    rm -rf "$peers/taskiq"
    "$python" -m venv "$peers/taskiq" &&
        "$peers/taskiq/bin/python" -m pip install -q --no-compile --no-cache-dir --only-binary :all: taskiq-aio-pika >&2 &&
        "$peers/taskiq/bin/python" -c 'import taskiq_aio_pika'
}

install_nameko() {
    "$peers/nameko/bin/python" -W ignore -c 'import nameko.standalone.rpc' 2>/dev/null && return 0
    rm -rf "$peers/nameko"
    "$python" -m venv "$peers/nameko" &&
        "$peers/nameko/bin/python" -m pip install -q --no-compile --no-cache-dir 'nameko>=2.14.1,<3' >&2 &&
        "$peers/nameko/bin/python" -W ignore -c 'import nameko.standalone.rpc'
}

# Clients of RabbitMQ's HTTP API.
install_http_clients() {
    "$peers/http-clients/bin/python" -c 'import pyrabbit2, amqpstorm' 2>/dev/null && return 0
    rm -rf "$peers/http-clients"
    "$python" -m venv "$peers/http-clients" &&
        "$peers/http-clients/bin/python" -m pip install -q --no-compile --no-cache-dir --only-binary :all: pyrabbit2 'amqpstorm>=2.11' >&2 &&
        "$peers/http-clients/bin/python" -c 'import pyrabbit2, amqpstorm'
}

# unpack NAME PACKAGE...: packages of Debian, not installed, but unpacked into $peers/NAME.
unpack() {
    command -v dpkg-deb >/dev/null || return 1
    place=$peers/$1
    shift
    rm -rf "$place" "$place.deb"
    apt_update || return 1
    mkdir -p "$place.deb" &&
        (cd "$place.deb" && apt-get download -qq "$@") >&2 &&
        for package in "$place.deb"/*.deb; do dpkg-deb -x "$package" "$place" || return 1; done &&
        rm -rf "$place.deb"
}

# RabbitMQ's client for Java: two archives of Debian, which are only unpacked.
install_java() {
    [ -f "$peers/java/usr/share/java/amqp-client.jar" ] && [ -f "$peers/java/usr/share/java/slf4j-api.jar" ] && command -v java >/dev/null && return 0
    command -v java >/dev/null || apt_install openjdk-17-jre-headless || return 1
    unpack java librabbitmq-client-java libslf4j-java
}

install_amqplib() {
    [ -f "$peers/amqplib/node_modules/amqplib/package.json" ] && command -v node >/dev/null && return 0
    command -v node >/dev/null || apt_install nodejs || return 1
    command -v npm >/dev/null || apt_install npm || return 1
    mkdir -p "$peers/amqplib" && npm install --silent --no-fund --no-audit --prefix "$peers/amqplib" amqplib@2.3.1 >&2
}

# The clients of the table (tests/interop/clients) that have no tests of their own.
install_clients_js() {
    [ -f "$peers/clients-js/node_modules/amqp10/package.json" ] && command -v node >/dev/null && return 0
    command -v node >/dev/null || apt_install nodejs || return 1
    command -v npm >/dev/null || apt_install npm || return 1
    mkdir -p "$peers/clients-js" &&
        npm install --silent --no-fund --no-audit --prefix "$peers/clients-js" 'amqp10@>=3.6.0' 'rhea@>=3.0.5' 'rhea-promise@>=3.0.3' \
            '@azure/core-amqp@>=4.4.2' '@sap/xb-msg-amqp-v100@>=0.9.58' '@cloudamqp/amqp-client@>=4.1.1' >&2
}

install_bunny() {
    command -v ruby >/dev/null && ruby -e 'require "bunny"' 2>/dev/null && return 0
    apt_install ruby-bunny
}

install_php_amqplib() {
    apt_install php-cli php-amqplib
}

# Commands on librabbitmq, which are only unpacked.
install_amqp_tools() {
    [ -x "$peers/amqp-tools/usr/bin/amqp-publish" ] && return 0
    unpack amqp-tools amqp-tools librabbitmq4 libpopt0
}

# The program that makes Cyrus's file of users, for a Proton that listens. The package would bring a service along:
# so it is only unpacked.
install_cyrus() {
    [ -x "$peers/cyrus/usr/sbin/saslpasswd2" ] && return 0
    unpack cyrus sasl2-bin
}

# Chromium needs it too, so two may ask at a time.
install_rhea() {
    one_at_a_time rhea fetch_rhea
}

fetch_rhea() {
    [ -f "$peers/rhea/node_modules/rhea/package.json" ] && [ -f "$peers/rhea/node_modules/ws/package.json" ] &&
        command -v node >/dev/null && return 0
    command -v node >/dev/null || apt_install nodejs || return 1
    command -v npm >/dev/null || apt_install npm || return 1
    mkdir -p "$peers/rhea" &&
        npm install --silent --no-fund --no-audit --prefix "$peers/rhea" rhea@3.0.5 ws@8 >&2
}

# rabbitmq MAJOR SUITE: a Debian tree with nothing but what the broker needs. Its packages are only unpacked: the broker runs in
# the tree without their being configured, but for the user that it runs as.
install_rabbitmq() {
    tree=$peers/rabbitmq$1
    [ -x "$tree/usr/lib/rabbitmq/bin/rabbitmq-server" ] && [ -f "$tree/etc/hosts" ] && return 0
    if [ "$(id -u)" != 0 ]; then
        say "debootstrap and chroot need root"
        return 1
    fi
    apt_install debootstrap || return 1
    apt_update || return 1
    # The mirror that apt uses here; none found means debootstrap's own default.
    # shellcheck disable=SC2016  # a format of apt's, not ours
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' |
        grep -v -e security -e '^file:' | head -n 1)
    rm -rf "$tree" "$tree.partial"
    # shellcheck disable=SC2086  # no mirror is no argument
    if ! debootstrap --foreign --variant=minbase --include=rabbitmq-server "$2" "$tree.partial" $mirror >"$tree.log" 2>&1; then
        tail -n 5 "$tree.log" >&2
        return 1
    fi
    for package in "$tree.partial/var/cache/apt/archives"/*.deb; do
        dpkg-deb -x "$package" "$tree.partial" || return 1
    done
    for table in passwd group; do
        cp "$tree.partial/usr/share/base-passwd/$table.master" "$tree.partial/etc/$table" || return 1
    done
    echo 'rabbitmq:x:101:102::/var/lib/rabbitmq:/usr/sbin/nologin' >>"$tree.partial/etc/passwd"
    echo 'rabbitmq:x:102:' >>"$tree.partial/etc/group"
    mkdir -p "$tree.partial/var/lib/rabbitmq"
    chown 101:102 "$tree.partial/var/lib/rabbitmq"
    # The node's name ends in @localhost, and Erlang wants to look that up.
    echo '127.0.0.1 localhost' >"$tree.partial/etc/hosts"
    rm -rf "$tree.partial/var/cache/apt/archives"/*.deb
    mv "$tree.partial" "$tree"
}

# Microsoft's clients of Azure Service Bus and Event Hubs, with their AMQP in Python.
install_azure() {
    "$peers/azure/bin/python" -c 'import azure.servicebus, azure.eventhub' 2>/dev/null && return 0
    "$python" -c 'import ensurepip' 2>/dev/null || apt_install python3-venv || return 1
    rm -rf "$peers/azure"
    "$python" -m venv "$peers/azure" &&
        "$peers/azure/bin/python" -m pip install -q --no-compile azure-servicebus==7.15.0 azure-eventhub==5.15.1 >&2
}

# The ones before them, on uamqp, which is in C; and uamqp itself.
install_uamqp() {
    "$peers/uamqp/bin/python" -c 'import azure.servicebus, azure.eventhub, uamqp' 2>/dev/null && return 0
    rm -rf "$peers/uamqp"
    "$python" -m venv "$peers/uamqp" &&
        "$peers/uamqp/bin/python" -m pip install -q --no-compile --no-cache-dir --only-binary :all: \
            azure-servicebus==7.8.3 azure-eventhub==5.10.1 uamqp==1.6.11 six >&2 &&
        "$peers/uamqp/bin/python" -c 'import azure.servicebus, azure.eventhub, uamqp'
}

# The same of Microsoft's for JavaScript, on rhea.
install_azure_js() {
    [ -f "$peers/azure-js/node_modules/@azure/event-hubs/package.json" ] && command -v node >/dev/null && return 0
    command -v node >/dev/null || apt_install nodejs || return 1
    command -v npm >/dev/null || apt_install npm || return 1
    mkdir -p "$peers/azure-js" &&
        npm install --silent --no-fund --no-audit --prefix "$peers/azure-js" @azure/service-bus@7.9.5 @azure/event-hubs@6.0.4 >&2
}

install_tshark() {
    command -v tshark >/dev/null && command -v dumpcap >/dev/null && return 0
    apt_install tshark
}

# A browser, whose pages run rhea.
install_chromium() {
    install_rhea || return 1
    command -v chromium >/dev/null && return 0
    apt_install chromium
}

# install PEER: and say what came of it.
install() {
    began=$(date +%s)
    case $1 in
    rabbitmq4) install_rabbitmq 4 trixie ;;
    rabbitmq3) install_rabbitmq 3 bookworm ;;
    *) "install_$(echo "$1" | tr - _)" ;;
    esac
    status=$?
    took=$(($(date +%s) - began))
    [ $status -eq 0 ] && say "$1: ready after $took s" || say "$1: could not be had"
    return $status
}

all="rabbitmq4 rabbitmq3 proton rabbitmq-client chromium frameworks taskiq nameko http-clients pika azure uamqp azure-js cyrus rhea amqplib java clients-js bunny php-amqplib amqp-tools tshark"
mkdir -p "$peers"
rm -f "$peers/.updated"
# shellcheck disable=SC2086  # a list of words
[ $# -gt 0 ] || set -- $all
for peer in "$@"; do
    case " $all " in
    *" $peer "*) ;;
    *)
        say "no such peer: $peer ($all)"
        exit 2
        ;;
    esac
done
processes=
for peer in "$@"; do
    install "$peer" &
    processes="$processes $!"
done
failed=
for process in $processes; do
    wait "$process" || failed=yes
done
[ -z "$failed" ]
