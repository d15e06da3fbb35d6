// TAP for the tests of clients in Java.

import java.sql.*;
import java.util.concurrent.Callable;

public class Tap {
    static int count, failed;
    static final String URL = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT")
        + "/" + System.getenv("PGDATABASE") + "?user=" + System.getenv("PGUSER");

    static void ok(boolean passed, String name, Object got) {
        System.out.println((passed ? "ok " : "not ok ") + ++count + " - " + name);
        if (!passed) {
            failed++;
            System.out.println("# got: " + got);
        }
    }

    static void same(Object got, Object expected, String name) {
        ok(expected.equals(got), name, got);
    }

    static Throwable fails(Callable<?> call, String name) {
        try {
            ok(false, name, call.call());
            return null;
        } catch (Throwable e) {
            ok(true, name, null);
            while (e.getCause() != null)
                e = e.getCause();
            return e;
        }
    }

    static void sql(String text) throws SQLException {
        try (Connection c = DriverManager.getConnection(URL); Statement s = c.createStatement()) {
            s.execute(text);
        }
    }

    static void finish() {
        System.out.println("1.." + count);
        System.exit(failed == 0 ? 0 : 1);
    }
}
