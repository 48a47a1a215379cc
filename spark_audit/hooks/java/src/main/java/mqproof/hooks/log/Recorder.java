package mqproof.hooks.log;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * Takes rows from the threads of the application and writes them in a thread of its own.
 *
 * record() never waits for an output: if the queue is full, or the output fails, rows are dropped and counted. The log
 * then has a `gap` row with the number of dropped rows and the time of the first of them.
 */
public final class Recorder implements AutoCloseable {
    private static final int BATCH_ROWS = 1_024;
    private static final long IDLE_MILLIS = 100;
    private static final long RETRY_MILLIS = 1_000;

    private final ArrayBlockingQueue<Row> queue;
    private final Output output;
    private final Sample sample;
    private final Thread writer;
    private final Object outputLock = new Object();
    private final Object dropLock = new Object();
    private long dropped;
    private long droppedSince;
    private String dropReason;
    private long droppedInAll;
    private long retryAt;
    private volatile boolean direct;
    private volatile boolean closed;

    private static Settings settings;

    /** Returns the settings of this process: those of the agent, or those that are read now. */
    public static synchronized Settings settings() {
        if (settings == null) {
            settings = Settings.read();
        }
        return settings;
    }

    /** Sets the settings of this process, before its first client starts. */
    public static synchronized void setSettings(Settings chosen) {
        settings = chosen;
    }

    public Recorder(Output output, int queueRows) {
        this(output, queueRows, new Sample(1));
    }

    public Recorder(Output output, int queueRows, Sample sample) {
        this.output = output;
        this.sample = sample;
        this.queue = new ArrayBlockingQueue<>(queueRows);
        this.writer = new Thread(this::run, "audit-hooks-writer");
        writer.setDaemon(true);
        if (output.missingSince() >= 0) {
            Row gap = new Row("gap");
            gap.attributes = new String[] {"since", Long.toString(output.missingSince()), "reason", "killed"};
            queue.add(gap);
        }
        writer.start();
    }

    /** Takes a row, or drops it. It waits for no input or output until complete() was called. */
    public void record(Row row) {
        if (row.messageId != null && !sample.contains(row.messageId)) {
            return;
        }
        if (direct) {
            synchronized (outputLock) {
                writeQueued();
                write(java.util.Collections.singletonList(row));
            }
        } else if (!queue.offer(row)) {
            drop(1, row.ts, "queue_full");
        } else if (direct) {
            synchronized (outputLock) {
                writeQueued();
            }
        }
    }

    /** Returns how many rows were dropped since the start. */
    public long droppedInAll() {
        synchronized (dropLock) {
            return droppedInAll;
        }
    }

    /** Writes what waits; from now on, rows are written at once. For the end of a process. */
    public void complete() {
        direct = true;
        synchronized (outputLock) {
            retryAt = 0;
            writeQueued();
            try {
                if (isNothingDropped()) {
                    output.complete();
                }
            } catch (IOException error) {
                report(error);
            }
        }
    }

    @Override
    public void close() throws IOException {
        complete();
        closed = true;
        synchronized (outputLock) {
            output.close();
        }
    }

    private void run() {
        while (!direct) {
            try {
                Row first = queue.poll(IDLE_MILLIS, TimeUnit.MILLISECONDS);
                synchronized (outputLock) {
                    if (first != null) {
                        List<Row> rows = new ArrayList<>(BATCH_ROWS);
                        rows.add(first);
                        queue.drainTo(rows, BATCH_ROWS - 1);
                        write(rows);
                    } else {
                        write(new ArrayList<>());
                    }
                    output.rest();
                }
            } catch (InterruptedException ended) {
                return;
            } catch (IOException | RuntimeException error) {
                report(error);
            }
        }
    }

    private void writeQueued() {
        List<Row> rows = new ArrayList<>();
        queue.drainTo(rows);
        for (int from = 0; from < rows.size(); from += BATCH_ROWS) {
            write(rows.subList(from, Math.min(rows.size(), from + BATCH_ROWS)));
        }
    }

    /** Writes rows, and the gap before them; without rows, only a gap. */
    private void write(List<Row> rows) {
        boolean waits = System.currentTimeMillis() < retryAt;
        if (closed || waits) {
            if (!rows.isEmpty()) {
                drop(rows.size(), rows.get(0).ts, "output_failed");
            }
            return;
        }
        Row gap = takeGap();
        List<Row> all = new ArrayList<>(rows.size() + 1);
        if (gap != null) {
            all.add(gap);
        }
        all.addAll(rows);
        if (all.isEmpty()) {
            return;
        }
        try {
            long seq = output.seqNext();
            List<byte[]> lines = new ArrayList<>(all.size());
            for (Row row : all) {
                lines.add(row.encoded(output.node(), seq++));
            }
            output.write(lines, all.get(all.size() - 1).ts);
        } catch (IOException | RuntimeException error) {
            retryAt = System.currentTimeMillis() + RETRY_MILLIS;
            if (gap != null) {
                putBack(gap);
            }
            if (!rows.isEmpty()) {
                drop(rows.size(), rows.get(0).ts, "output_failed");
            }
            report(error);
        }
    }

    private void drop(int rows, long since, String reason) {
        synchronized (dropLock) {
            if (dropped == 0) {
                droppedSince = since;
                dropReason = reason;
            }
            droppedSince = Math.min(droppedSince, since);
            dropped += rows;
            droppedInAll += rows;
        }
    }

    private boolean isNothingDropped() {
        synchronized (dropLock) {
            return dropped == 0;
        }
    }

    private Row takeGap() {
        synchronized (dropLock) {
            if (dropped == 0) {
                return null;
            }
            Row gap = new Row("gap");
            gap.attributes = new String[] {
                "since", Long.toString(droppedSince), "dropped", Long.toString(dropped), "reason", dropReason};
            dropped = 0;
            return gap;
        }
    }

    private void putBack(Row gap) {
        synchronized (dropLock) {
            droppedSince = Long.parseLong(gap.attributes[1]);
            dropped += Long.parseLong(gap.attributes[3]);
            dropReason = gap.attributes[5];
        }
    }

    private long reportedAt;

    /** Reports a failure on standard error, at most once a minute. */
    private void report(Exception error) {
        long now = System.currentTimeMillis();
        if (now - reportedAt >= 60_000) {
            reportedAt = now;
            System.err.println("audit-hooks: rows are dropped and counted: " + error);
        }
    }
}
