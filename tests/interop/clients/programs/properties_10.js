// Every property of AMQP 1.0, as rhea and what is built on it name them.
"use strict";

module.exports = (n) => ({
  message_id: n % 2 ? `id-${n}` : n + 1, user_id: Buffer.from("guest"), subject: `s${n}`, reply_to: `r${n}`, correlation_id: `c${n}`,
  content_type: "text/plain", content_encoding: "utf-8", absolute_expiry_time: new Date(4000000000000 + n), creation_time: new Date(1000000000000 + n),
  group_id: `g${n}`, group_sequence: n, reply_to_group_id: `h${n}`, durable: true, priority: 5,
  application_properties: { text: `t${n}`, number: n, large: 2 ** 40 + n, negative: -1 - n, true: true, half: n + 0.5, octets: Buffer.from(`${n}`), none: null },
  message_annotations: { "x-opt-note": `a${n}` },
});
