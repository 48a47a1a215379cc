package mqproof.hooks.log;

import java.nio.charset.StandardCharsets;
import java.time.Instant;

/**
 * One row of the event log. The hooks fill it in the thread of the application; the writer encodes it later. A column
 * that stays null or negative is left out of the row.
 */
public final class Row {
    /** The version of the event log that these rows follow. */
    static final String SCHEMA = "2";

    final long ts;
    final String kind;
    public String messageId;
    public String topic;
    public int queueId = -1;
    public long queueOffset = -1;
    public long commitOffset = -1;
    public String group;
    public String client;
    public String status;
    public int attempt = -1;
    public String keys;
    public String tags;
    public long bornMillis = -1;
    /** Names and values of attributes, in turn. */
    public String[] attributes = {};

    public Row(String kind) {
        this(kind, nowMicros());
    }

    Row(String kind, long ts) {
        this.kind = kind;
        this.ts = ts;
    }

    static long nowMicros() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1_000;
    }

    /** Returns the row as a line of NDJSON. */
    byte[] encoded(String node, long seq) {
        StringBuilder out = new StringBuilder(320);
        out.append("{\"ts\":").append(ts).append(",\"seq\":").append(seq);
        text(out, "node", node);
        text(out, "kind", kind);
        text(out, "msg_id", messageId);
        text(out, "topic", topic);
        number(out, "queue_id", queueId);
        number(out, "queue_offset", queueOffset);
        number(out, "commit_offset", commitOffset);
        text(out, "group", group);
        text(out, "client", client);
        text(out, "status", status);
        number(out, "attempt", attempt);
        text(out, "keys", keys);
        text(out, "tags", tags);
        number(out, "born_ts", bornMillis < 0 ? -1 : bornMillis * 1_000);
        attributes(out, seq);
        return out.append("}\n").toString().getBytes(StandardCharsets.UTF_8);
    }

    private void attributes(StringBuilder out, long seq) {
        StringBuilder inner = new StringBuilder();
        for (int i = 0; i < attributes.length; i += 2) {
            text(inner, attributes[i], attributes[i + 1]);
        }
        if (seq == 0) {
            text(inner, "schema", SCHEMA);
        }
        if (inner.length() > 0) {
            out.append(",\"attrs\":{").append(inner, 1, inner.length()).append('}');
        }
    }

    private static void number(StringBuilder out, String name, long value) {
        if (value >= 0) {
            out.append(",\"").append(name).append("\":").append(value);
        }
    }

    private static void text(StringBuilder out, String name, String value) {
        if (value == null) {
            return;
        }
        out.append(",\"").append(name).append("\":\"");
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || Character.isSurrogate(c)) {
                // A surrogate without its other half has no UTF-8; escaped, it stays as it is.
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
