package mqproof.hooks.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files rotate, numbers continue, and a process that was killed leaves a gap. */
class FileOutputTest {
    @TempDir
    Path folder;

    private Settings settings(String... more) {
        Properties properties = new Properties();
        properties.setProperty("audit.hooks.directory", folder.toString());
        properties.setProperty("audit.hooks.node", "n");
        for (int i = 0; i < more.length; i += 2) {
            properties.setProperty("audit.hooks." + more[i], more[i + 1]);
        }
        return Settings.of(Collections.emptyMap(), properties, "");
    }

    private static void write(FileOutput output, int rows) throws IOException {
        List<byte[]> lines = new ArrayList<>();
        long seq = output.seqNext();
        for (int i = 0; i < rows; i++) {
            lines.add(new Row("send", 1_000 + seq).encoded(output.node(), seq++));
        }
        output.write(lines, 1_000 + seq - 1);
    }

    /** As a process that is killed: nothing is closed but the lock, which the system releases. */
    private static void kill(FileOutput output) throws Exception {
        java.lang.reflect.Field field = FileOutput.class.getDeclaredField("lockFile");
        field.setAccessible(true);
        ((java.nio.channels.FileChannel) field.get(output)).close();
    }

    private List<String> rows() throws IOException {
        List<String> rows = new ArrayList<>();
        for (String name : names(".ndjson")) {
            rows.addAll(Files.readAllLines(folder.resolve(name), StandardCharsets.UTF_8));
        }
        return rows;
    }

    private List<String> names(String suffix) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).filter(name -> name.endsWith(suffix))
                .sorted().collect(Collectors.toList());
        }
    }

    @Test
    void aProcessThatEndedContinuesWithoutAGap() throws IOException {
        FileOutput first = FileOutput.open(settings());
        write(first, 3);
        first.complete();
        write(first, 1); // after the end of the application
        first.close();
        FileOutput second = FileOutput.open(settings());
        assertEquals(-1, second.missingSince());
        assertEquals(4, second.seqNext());
        second.close();
        assertEquals(4, rows().size());
    }

    @Test
    void aKilledProcessLeavesAGapAndAnIncompleteRowIsCutOff() throws Exception {
        FileOutput first = FileOutput.open(settings());
        write(first, 3);
        Files.write(folder.resolve("n.part"), "{\"ts\":9,\"seq\":3,\"no".getBytes(), StandardOpenOption.APPEND);
        kill(first);
        assertEquals(Collections.emptyList(), names(".ndjson"));
        FileOutput second = FileOutput.open(settings());
        assertTrue(second.missingSince() > 0);
        assertEquals(3, second.seqNext());
        new Recorder(second, 16).close();
        List<String> rows = rows();
        assertEquals(4, rows.size());
        assertTrue(rows.get(3).contains("\"seq\":3") && rows.get(3).contains("\"reason\":\"killed\""), rows.get(3));
        assertEquals(-1, FileOutput.open(settings()).missingSince());
    }

    @Test
    void recoveryFinishesTheFilesOfKilledProcessesOnly() throws Exception {
        FileOutput killed = FileOutput.open(settings());
        write(killed, 2);
        kill(killed);
        FileOutput running = FileOutput.open(settings("node", "other"));
        write(running, 2);
        assertEquals(Collections.singletonList("n"), Recovery.recover(folder));
        assertEquals(Collections.emptyList(), Recovery.recover(folder));
        assertEquals(3, rows().size());
        assertEquals(Collections.singletonList("other.part"), names(".part"));
    }

    @Test
    void aSecondProcessTakesAnotherName() throws IOException {
        assertEquals("n", FileOutput.open(settings()).node());
        assertEquals("n-2", FileOutput.open(settings()).node());
        assertNull(FileOutput.openExactly(settings()));
    }

    @Test
    void filesRotateAndTheOldestAreDeleted() throws IOException {
        FileOutput output = FileOutput.open(settings("file-mib", "1", "total-mib", "2"));
        for (int i = 0; i < 60; i++) {
            write(output, 1_000); // about 60 KB
        }
        output.close();
        List<String> names = names(".ndjson");
        assertTrue(names.size() >= 2 && names.size() <= 3, names.toString());
        assertFalse(names.contains("n-000000000000.ndjson"));
        List<String> rows = rows();
        for (int i = 1; i < rows.size(); i++) {
            assertEquals(number(rows.get(i - 1)) + 1, number(rows.get(i)));
        }
    }

    private static long number(String row) {
        return Long.parseLong(row.replaceAll(".*\"seq\":(\\d+),.*", "$1"));
    }

    @Test
    void aWrongSettingIsRefused() {
        assertThrows(IllegalArgumentException.class, () -> settings("queue-rows", "many"));
        assertThrows(IllegalArgumentException.class, () -> settings("queue-rows", "1"));
        assertThrows(IllegalArgumentException.class, () -> settings("colour", "red"));
        assertThrows(IllegalArgumentException.class, () -> settings("topic", "T", "namesrv", "h:1"));
        assertThrows(IllegalArgumentException.class,
            () -> Settings.of(Collections.emptyMap(), new Properties(), "topic=T"));
        assertThrows(IllegalArgumentException.class,
            () -> Settings.of(Collections.emptyMap(), new Properties(), "directory"));
        assertEquals(5_000, Settings.of(Collections.singletonMap("AUDIT_HOOKS_FILE_SECONDS", "9"), new Properties(),
            "file-seconds=5").fileMillis());
    }
}
