package mqproof.hooks.agent;

import java.net.URL;
import java.net.URLClassLoader;

/**
 * Loads the classes of mqproof.hooks once more, so that they use the client of an application with class loaders of its own.
 * The packages below it, and so the recorder, stay the agent's.
 */
final class LinkedLoader extends URLClassLoader {
    private static final String PACKAGE = "mqproof.hooks.";

    private final ClassLoader own;

    LinkedLoader(URL jar, ClassLoader ofClient, ClassLoader own) {
        super(new URL[] {jar}, ofClient);
        this.own = own;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.startsWith(PACKAGE)) {
            return super.loadClass(name, resolve);
        }
        if (name.indexOf('.', PACKAGE.length()) >= 0) {
            return own.loadClass(name);
        }
        synchronized (getClassLoadingLock(name)) {
            Class<?> loaded = findLoadedClass(name);
            return loaded == null ? findClass(name) : loaded;
        }
    }
}
