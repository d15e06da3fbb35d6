// snowflake_convert_online() by pgjdbc, in autocommit mode or not.

import java.sql.*;

public class ConvertOnline extends Tap {
    static final String OUTSIDE = "must be converted outside of a transaction block";

    // The kind of the sequence of the key.
    static String kindOf(Connection c, String table) throws SQLException {
        try (Statement s = c.createStatement();
                ResultSet r = s.executeQuery("SELECT kind FROM snowflake_sequences WHERE table_name = '" + table + "'")) {
            r.next();
            return r.getString(1);
        }
    }

    public static void main(String[] args) throws Exception {
        Connection c = DriverManager.getConnection(URL + args[1]);
        String table = args[0];
        for (String name : new String[] { table, table + "_p" })
            sql("CREATE TABLE " + name + " (id serial PRIMARY KEY, v int); INSERT INTO " + name
                + " (v) SELECT generate_series(1, 100)");

        c.setAutoCommit(false);
        Throwable e = fails(() -> {
            try (Statement s = c.createStatement()) {
                return s.execute("CALL snowflake_convert_online('" + table + "')");
            }
        }, "without autocommit");
        ok(e != null && e.getMessage().contains(OUTSIDE), "the message says why", e);
        c.rollback();
        c.setAutoCommit(true);
        try (Statement s = c.createStatement()) {
            e = fails(() -> s.execute("INSERT INTO " + table + " (v) VALUES (-1); CALL snowflake_convert_online('" + table + "')"),
                "with another statement");
            try (ResultSet r = s.executeQuery("SELECT count(*), count(*) FILTER (WHERE v = -1) FROM " + table)) {
                r.next();
                same(r.getInt(1) + " " + r.getInt(2), "100 0", "which is not committed");
            }
            s.execute("CALL snowflake_convert_online('" + table + "')");
            boolean swapped = false;
            for (SQLWarning w = s.getWarnings(); w != null; w = w.getNextWarning())
                swapped |= w.getMessage().contains("phase \"swap\"");
            ok(swapped, "progress is in the warnings", s.getWarnings());
        }
        same(kindOf(c, table), "snowflake", "Statement");
        try (PreparedStatement p = c.prepareStatement("CALL snowflake_convert_online(?::regclass, until => ?)")) {
            p.setString(1, table + "_p");
            for (String phase : new String[] { "prepare", "backfill", "indexes", "foreign keys", "swap", "default" }) {
                p.setString(2, phase);
                p.execute();
            }
        }
        same(kindOf(c, table + "_p"), "snowflake", "PreparedStatement, one phase after the other");
        finish();
    }
}
