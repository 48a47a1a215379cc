package mqproof.hooks.log;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;

/**
 * The settings of the hooks. Each has a default, an environment variable (AUDIT_HOOKS_QUEUE_ROWS), a system property
 * (audit.hooks.queue-rows), and an argument of the agent (queue-rows=...). The last of these that is set applies.
 */
public final class Settings {
    private static final String PREFIX = "audit.hooks.";
    private static final List<String> NAMES = Arrays.asList(
        "directory", "node", "queue-rows", "file-mib", "file-seconds", "total-mib", "topic", "namesrv", "sampling");

    private final Map<String, String> values;

    private Settings(Map<String, String> values) {
        this.values = values;
    }

    /** Reads the settings of this process. Throws IllegalArgumentException, which names a wrong setting. */
    public static Settings read() {
        return of(System.getenv(), System.getProperties(), "");
    }

    /** Reads them with the arguments of the agent: NAME=VALUE, separated by commas. */
    public static Settings read(String arguments) {
        return of(System.getenv(), System.getProperties(), arguments);
    }

    static Settings of(Map<String, String> environment, Properties properties, String arguments) {
        Map<String, String> values = new HashMap<>();
        for (String name : NAMES) {
            put(values, name, environment.get("AUDIT_HOOKS_" + name.toUpperCase(Locale.ROOT).replace('-', '_')));
            put(values, name, properties.getProperty(PREFIX + name));
        }
        for (String argument : arguments == null || arguments.isEmpty() ? new String[0] : arguments.split(",")) {
            String[] parts = argument.split("=", 2);
            if (parts.length < 2 || !NAMES.contains(parts[0])) {
                throw new IllegalArgumentException(
                    "audit-hooks: " + argument + ": expected NAME=VALUE with a name of " + String.join(", ", NAMES));
            }
            put(values, parts[0], parts[1]);
        }
        for (Object key : properties.keySet()) {
            String name = String.valueOf(key);
            if (name.startsWith(PREFIX) && !NAMES.contains(name.substring(PREFIX.length()))) {
                throw new IllegalArgumentException(
                    "audit-hooks: -D" + name + ": expected a name of " + String.join(", ", NAMES));
            }
        }
        Settings settings = new Settings(values);
        settings.check();
        return settings;
    }

    private static void put(Map<String, String> values, String name, String value) {
        if (value != null && !value.isEmpty()) {
            values.put(name, value);
        }
    }

    private void check() {
        queueRows();
        fileBytes();
        fileMillis();
        totalBytes();
        sampling();
        if (topic() != null && nameServers() == null) {
            throw new IllegalArgumentException("audit-hooks: topic: namesrv is missing, expected HOST:PORT");
        }
        if (topic() != null && values.containsKey("directory")) {
            throw new IllegalArgumentException("audit-hooks: topic and directory: expected one of them");
        }
    }

    public String directory() {
        return values.getOrDefault("directory", "audit-events");
    }

    /** Returns the name of the node: by default, the name of the host. */
    public String node() {
        String named = values.get("node");
        if (named != null) {
            return named;
        }
        String host = System.getenv("HOSTNAME");
        if (host != null && !host.isEmpty()) {
            return host;
        }
        try {
            return java.net.InetAddress.getLocalHost().getHostName();
        } catch (java.net.UnknownHostException error) {
            return "java-client";
        }
    }

    /** Returns the maximum number of rows that wait to be written. */
    public int queueRows() {
        return (int) number("queue-rows", 65_536, 16, 10_000_000);
    }

    /** Returns the size of a file at which the next one begins. */
    public long fileBytes() {
        return number("file-mib", 64, 1, 4_096) << 20;
    }

    /** Returns the age of a file at which the next one begins. */
    public long fileMillis() {
        return number("file-seconds", 10, 1, 86_400) * 1_000;
    }

    /** Returns the maximum size of all finished files of the node; older files are deleted. */
    public long totalBytes() {
        return number("total-mib", 1_024, 1, 1 << 24) << 20;
    }

    /** Returns the topic to write to, or null for files. */
    public String topic() {
        return values.get("topic");
    }

    public String nameServers() {
        return values.get("namesrv");
    }

    /** Returns the messages to record. */
    public Sample sampling() {
        String text = values.getOrDefault("sampling", "1");
        try {
            double rate = Double.parseDouble(text);
            if (rate > 0 && rate <= 1) {
                return new Sample(rate);
            }
        } catch (NumberFormatException error) {
            // The message below covers it.
        }
        throw new IllegalArgumentException("audit-hooks: sampling=" + text + ": expected a rate above 0 and up to 1");
    }

    private long number(String name, long byDefault, long min, long max) {
        String text = values.get(name);
        if (text == null) {
            return byDefault;
        }
        try {
            long number = Long.parseLong(text);
            if (number >= min && number <= max) {
                return number;
            }
        } catch (NumberFormatException error) {
            // The message below covers it.
        }
        throw new IllegalArgumentException(
            "audit-hooks: " + name + "=" + text + ": expected a whole number from " + min + " to " + max);
    }
}
