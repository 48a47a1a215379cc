import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.URLConnection;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/**
 * Several released brokers in one process, each with a store, a port and a log file of its own. It is driven over
 * standard input and output by conformance/adapters/apache/broker_farm.py.
 *
 * A command is a line, "start NAME PROPERTIES LOG" or "stop NAME". Its answer is a line, "NAME started",
 * "NAME stopped" or "NAME refused REASON". Commands for different brokers run at the same time.
 */
public class BrokerFarm {
    private static final PrintStream ANSWERS = System.out;
    private static final Map<String, BrokerController> BROKERS = new ConcurrentHashMap<>();
    private static final Map<String, ThreadGroup> GROUPS = new ConcurrentHashMap<>();
    private static final Map<String, OutputStream> LOGS = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        // Otherwise all brokers read resources through one JarFile, which 5.5.0 closes after its own read.
        URLConnection.setDefaultUseCaches("jar", false);
        PrintStream routed = new PrintStream(new ByGroup(), true, "UTF-8");
        System.setOut(routed);
        System.setErr(routed);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            // Each thread that a broker creates belongs to the group of the thread that creates it.
            ThreadGroup group = GROUPS.computeIfAbsent(words[1], ThreadGroup::new);
            new Thread(group, () -> answer(words)).start();
        }
        System.exit(0);
    }

    private static void answer(String[] words) {
        String name = words[1];
        String result;
        try {
            result = words[0].equals("start") ? start(name, words[2], words[3]) : stop(name);
        } catch (Throwable error) {
            error.printStackTrace();
            result = "refused " + String.valueOf(error).replaceAll("\\s+", " ");
        }
        synchronized (ANSWERS) {
            ANSWERS.println(name + " " + result);
            ANSWERS.flush();
        }
    }

    private static String start(String name, String file, String log) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream in = new FileInputStream(file)) {
            properties.load(in);
        }
        LOGS.put(name, new FileOutputStream(log, true));
        BrokerConfig broker = new BrokerConfig();
        NettyServerConfig server = new NettyServerConfig();
        NettyClientConfig client = new NettyClientConfig();
        MessageStoreConfig store = new MessageStoreConfig();
        for (Object each : new Object[] {broker, server, client, store}) {
            MixAll.properties2Object(properties, each);
        }
        BrokerController controller = new BrokerController(broker, server, client, store);
        BROKERS.put(name, controller);
        if (!controller.initialize()) {
            end(name);
            return "refused the broker did not initialize";
        }
        controller.start();
        return "started";
    }

    private static String stop(String name) throws Exception {
        end(name);
        return "stopped";
    }

    /** Shut a broker down, as far as it can be: one that was refused is not complete. */
    private static void end(String name) throws Exception {
        BrokerController controller = BROKERS.remove(name);
        Thread hurry = new Thread(BrokerFarm::hurry);
        hurry.start();
        try {
            if (controller != null) {
                controller.shutdown();
            }
        } catch (RuntimeException error) {
            error.printStackTrace();
        }
        hurry.interrupt();
        OutputStream log = LOGS.remove(name);
        if (log != null) {
            log.close();
        }
    }

    /** Wake the threads of the broker that wait up to 3 s for a network event, so that its shutdown need not. */
    private static void hurry() {
        Thread[] threads = new Thread[1000];
        try {
            while (true) {
                Thread.sleep(100);
                int count = Thread.currentThread().getThreadGroup().enumerate(threads);
                for (int at = 0; at < count; at++) {
                    if (threads[at].getName().startsWith("NettyEventExecutor")) {
                        threads[at].interrupt();
                    }
                }
            }
        } catch (InterruptedException end) {
            // The broker is shut down.
        }
    }

    /** Writes to the log file of the broker whose thread writes. */
    private static class ByGroup extends OutputStream {
        @Override
        public void write(int single) throws IOException {
            write(new byte[] {(byte) single}, 0, 1);
        }

        @Override
        public void write(byte[] data, int offset, int size) throws IOException {
            for (ThreadGroup group = Thread.currentThread().getThreadGroup(); group != null; group = group.getParent()) {
                OutputStream log = LOGS.get(group.getName());
                if (log != null) {
                    log.write(data, offset, size);
                    return;
                }
            }
        }
    }
}
