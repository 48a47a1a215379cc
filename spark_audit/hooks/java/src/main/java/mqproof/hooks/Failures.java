package mqproof.hooks;

import java.util.concurrent.atomic.AtomicLong;

/** Reports defects of the hooks themselves: the application must not notice them. */
final class Failures {
    private static final long BETWEEN_MILLIS = 60_000;
    private static final AtomicLong REPORTED_AT = new AtomicLong();

    private Failures() {
    }

    static void report(Throwable error) {
        long now = System.currentTimeMillis();
        long before = REPORTED_AT.get();
        if (now - before >= BETWEEN_MILLIS && REPORTED_AT.compareAndSet(before, now)) {
            System.err.println("audit-hooks: an event was not recorded: " + error);
        }
    }
}
