package mqproof.hooks.log;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What is in a file that a process left behind: its complete rows. */
final class PartFile {
    private static final Pattern BEGIN = Pattern.compile("^\\{\"ts\":(\\d+),\"seq\":(\\d+),");
    private static final int LINE_BEGIN_BYTES = 64;

    long rows;
    long bytes;
    long firstSeq = -1;
    long lastSeq = -1;
    long lastTs = -1;

    private PartFile() {
    }

    static PartFile read(Path path) throws IOException {
        PartFile found = new PartFile();
        try (InputStream in = new BufferedInputStream(Files.newInputStream(path), 1 << 16)) {
            byte[] begin = new byte[LINE_BEGIN_BYTES];
            int length = 0;
            long position = 0;
            for (int next = in.read(); next >= 0; next = in.read()) {
                position++;
                if (next != '\n') {
                    if (length < begin.length) {
                        begin[length++] = (byte) next;
                    }
                    continue;
                }
                if (!found.take(new String(begin, 0, length, StandardCharsets.ISO_8859_1), position)) {
                    break;
                }
                length = 0;
            }
        }
        return found;
    }

    private boolean take(String begin, long end) {
        Matcher matcher = BEGIN.matcher(begin);
        if (!matcher.find()) {
            return false;
        }
        lastSeq = Long.parseLong(matcher.group(2));
        firstSeq = rows == 0 ? lastSeq : firstSeq;
        lastTs = Math.max(lastTs, Long.parseLong(matcher.group(1)));
        rows++;
        bytes = end;
        return true;
    }
}
