package mqproof.hooks.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A recorder never waits for its output, and accounts for every row that it drops. */
@Timeout(60)
class RecorderTest {
    /** An output that waits, or fails, until it may go on. */
    private static final class SlowOutput implements Output {
        final List<String> lines = new ArrayList<>();
        final CountDownLatch mayWrite = new CountDownLatch(1);
        volatile boolean isFull;
        private long seqNext;

        @Override
        public String node() {
            return "n";
        }

        @Override
        public long seqNext() {
            return seqNext;
        }

        @Override
        public long missingSince() {
            return -1;
        }

        @Override
        public void write(List<byte[]> rows, long lastTs) throws IOException {
            try {
                mayWrite.await();
            } catch (InterruptedException error) {
                throw new IOException(error);
            }
            if (isFull) {
                throw new IOException("No space left on device");
            }
            for (byte[] row : rows) {
                lines.add(new String(row, StandardCharsets.UTF_8));
            }
            seqNext += rows.size();
        }

        @Override
        public void rest() {
        }

        @Override
        public void complete() {
        }

        @Override
        public void close() {
        }
    }

    private static Row row(String id) {
        Row row = new Row("send");
        row.messageId = id;
        return row;
    }

    @Test
    void aFullQueueDropsRowsAndTheLogHasTheirNumber() throws IOException {
        SlowOutput output = new SlowOutput();
        Recorder recorder = new Recorder(output, 16);
        for (int i = 0; i < 1_000; i++) {
            recorder.record(row("m" + i)); // the output waits all the time: this loop must end
        }
        assertTrue(recorder.droppedInAll() >= 1_000 - 16 - 1_024, "dropped " + recorder.droppedInAll());
        long dropped = recorder.droppedInAll();
        assertTrue(dropped > 0);
        output.mayWrite.countDown();
        recorder.close();
        long gaps = output.lines.stream().filter(line -> line.contains("\"gap\"")).count();
        long counted = output.lines.stream().filter(line -> line.contains("\"gap\""))
            .mapToLong(line -> Long.parseLong(line.replaceAll(".*\"dropped\":\"(\\d+)\".*\n", "$1"))).sum();
        assertEquals(dropped, counted);
        assertEquals(1_000 - dropped + gaps, output.lines.size());
        for (int i = 0; i < output.lines.size(); i++) {
            assertTrue(output.lines.get(i).contains("\"seq\":" + i + ","), output.lines.get(i));
        }
    }

    @Test
    void onlyMessagesOfTheSampleAreRecordedAndAllRowsWithoutAMessage() throws IOException {
        SlowOutput output = new SlowOutput();
        output.mayWrite.countDown();
        Settings settings = Settings.of(Collections.singletonMap("AUDIT_HOOKS_SAMPLING", "0.01"), new Properties(), "");
        Recorder recorder = new Recorder(output, 64, settings.sampling());
        recorder.record(new Row("rebalance"));
        recorder.record(row("message-0"));
        recorder.record(row("message-99")); // the only one of the first 100
        recorder.close();
        assertEquals(2, output.lines.size());
        assertTrue(output.lines.get(1).contains("\"msg_id\":\"message-99\""), output.lines.get(1));
        assertTrue(new Sample(1).contains("message-0"));
        for (String wrong : new String[] {"0", "1.5", "much", "NaN"}) {
            assertThrows(IllegalArgumentException.class,
                () -> Settings.of(Collections.singletonMap("AUDIT_HOOKS_SAMPLING", wrong), new Properties(), ""));
        }
    }

    @Test
    void aDiskWithoutSpaceDropsRowsAndTheyAreReportedWhenThereIsSpace() throws Exception {
        SlowOutput output = new SlowOutput();
        output.mayWrite.countDown();
        output.isFull = true;
        Recorder recorder = new Recorder(output, 64);
        recorder.record(row("lost"));
        while (recorder.droppedInAll() == 0) {
            Thread.sleep(5);
        }
        output.isFull = false;
        while (output.lines.isEmpty()) {
            Thread.sleep(5);
        }
        recorder.record(row("kept"));
        recorder.close();
        assertEquals(2, output.lines.size());
        assertTrue(output.lines.get(0).contains("\"dropped\":\"1\",\"reason\":\"output_failed\""), output.lines.get(0));
        assertTrue(output.lines.get(1).contains("\"msg_id\":\"kept\""));
    }

    @Test
    void rowsAfterTheEndOfTheApplicationAreWrittenAtOnce() throws IOException {
        SlowOutput output = new SlowOutput();
        output.mayWrite.countDown();
        Recorder recorder = new Recorder(output, 64);
        recorder.record(row("before"));
        recorder.complete();
        assertEquals(1, output.lines.size());
        recorder.record(row("after"));
        assertEquals(2, output.lines.size());
    }

    @Test
    void textIsEscaped() {
        Row row = new Row("send", 5);
        row.keys = "a \"b\" \\ \n é \ud83d\ude00";
        row.tags = "";
        String line = new String(row.encoded("n", 0), StandardCharsets.UTF_8);
        assertEquals("{\"ts\":5,\"seq\":0,\"node\":\"n\",\"kind\":\"send\",\"keys\":\"a \\\"b\\\" \\\\ \\u000a é "
            + "\\ud83d\\ude00\",\"tags\":\"\",\"attrs\":{\"schema\":\"2\"}}\n", line);
    }
}
