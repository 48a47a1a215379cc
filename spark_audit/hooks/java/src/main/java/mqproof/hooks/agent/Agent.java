package mqproof.hooks.agent;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.Method;
import java.net.URL;
import java.security.ProtectionDomain;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;

import mqproof.hooks.log.Recorder;
import mqproof.hooks.log.Settings;

/**
 * The Java agent: java -javaagent:audit-hooks.jar[=NAME=VALUE,...].
 *
 * It adds one call to the methods by which clients start, so that each client is observed before its first message.
 */
public final class Agent {
    private static final String HOOKS = "mqproof.hooks.AuditHooks";
    private static final Map<String, String> STARTS = new HashMap<>();
    private static final Map<ClassLoader, Method> OBSERVERS = new WeakHashMap<>();

    static {
        STARTS.put("org/apache/rocketmq/client/impl/producer/DefaultMQProducerImpl", "start(Z)V");
        STARTS.put("org/apache/rocketmq/client/impl/consumer/DefaultMQPushConsumerImpl", "start()V");
        STARTS.put("org/apache/rocketmq/client/impl/consumer/DefaultLitePullConsumerImpl", "start()V");
    }

    private Agent() {
    }

    /** Called by Java before main(). A wrong setting ends the program here. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        Recorder.setSettings(Settings.read(arguments));
        instrumentation.addTransformer(new Starts());
    }

    /** Called by a client that starts. */
    public static void starting(Object client) {
        try {
            observer(client.getClass().getClassLoader()).invoke(null, client);
        } catch (Throwable error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            System.err.println("audit-hooks: a client is not observed: " + cause);
        }
    }

    /** Returns AuditHooks.starting(), linked to the client of this class loader. */
    private static synchronized Method observer(ClassLoader ofClient) throws Exception {
        Method known = OBSERVERS.get(ofClient);
        if (known == null) {
            ClassLoader own = Agent.class.getClassLoader();
            URL jar = Agent.class.getProtectionDomain().getCodeSource().getLocation();
            ClassLoader linked = ofClient == own ? own : new LinkedLoader(jar, ofClient, own);
            known = Class.forName(HOOKS, true, linked).getMethod("starting", Object.class);
            OBSERVERS.put(ofClient, known);
        }
        return known;
    }

    private static final class Starts implements ClassFileTransformer {
        @Override
        public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain,
            byte[] bytes) {
            String method = name == null ? null : STARTS.get(name);
            if (method == null) {
                return null;
            }
            try {
                // Otherwise the added call would fail in the application.
                if (Class.forName(Agent.class.getName(), false, loader) != Agent.class) {
                    throw new IllegalStateException("its class loader has another " + Agent.class.getName());
                }
                return StartCall.added(bytes, method, Agent.class.getName().replace('.', '/'));
            } catch (Throwable error) {
                System.err.println("audit-hooks: " + name + " is not observed: " + error);
                return null;
            }
        }
    }
}
