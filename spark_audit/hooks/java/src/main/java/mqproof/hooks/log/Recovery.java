package mqproof.hooks.log;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Finishes the files of processes that were killed and will not start again: java -jar audit-hooks.jar DIRECTORY.
 *
 * Each of their logs gets a `gap` row, because rows that waited in the process are lost. The files of a process that
 * runs are left alone.
 */
public final class Recovery {
    private Recovery() {
    }

    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 1 || !Files.isDirectory(Paths.get(arguments[0]))) {
            System.err.println("usage: java -jar audit-hooks.jar DIRECTORY");
            System.exit(2);
        }
        for (String node : recover(Paths.get(arguments[0]))) {
            System.out.println(node + ": finished, with a gap");
        }
    }

    /** Returns the nodes whose logs have got a gap. */
    static List<String> recover(Path directory) throws IOException {
        List<String> nodes;
        try (Stream<Path> files = Files.list(directory)) {
            nodes = files.map(file -> file.getFileName().toString()).filter(name -> name.endsWith(".state"))
                .map(name -> name.substring(0, name.length() - ".state".length()))
                .sorted().collect(Collectors.toList());
        }
        return nodes.stream().filter(node -> recovered(directory, node)).collect(Collectors.toList());
    }

    private static boolean recovered(Path directory, String node) {
        Properties properties = new Properties();
        properties.setProperty("audit.hooks.directory", directory.toString());
        properties.setProperty("audit.hooks.node", node);
        Settings settings = Settings.of(java.util.Collections.emptyMap(), properties, "");
        try {
            FileOutput output = FileOutput.openExactly(settings);
            if (output == null) {
                return false;
            }
            boolean hasGap = output.missingSince() >= 0;
            new Recorder(output, settings.queueRows()).close();
            return hasGap;
        } catch (IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }
}
