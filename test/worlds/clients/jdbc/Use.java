import java.sql.*;
import java.util.*;

public class Use extends Tap {
    public static void main(String[] args) throws Exception {
        Connection c = DriverManager.getConnection(URL + args[0]);
        long id = Insert.insert(c, "a");
        try (Statement s = c.createStatement();
                ResultSet r = s.executeQuery("SELECT name FROM invoice WHERE id = " + id)) {
            ok(r.next() && r.getString(1).equals("a") && id > 1e18, "the ID of the row", id);
        }
        List<String> names = new ArrayList<>();
        for (int i = 0; i < 1000; i++)
            names.add("batch " + i);
        List<Long> ids = Insert.insertAll(c, names);
        List<String> found = new ArrayList<>();
        try (PreparedStatement p = c.prepareStatement("SELECT name FROM invoice WHERE id = ?")) {
            for (long one : ids) {
                p.setLong(1, one);
                try (ResultSet r = p.executeQuery()) {
                    r.next();
                    found.add(r.getString(1));
                }
            }
        }
        same(found, names, "the IDs of a batch, in its order");
        try (ResultSet r = c.getMetaData().getColumns(null, "public", "invoice", "id")) {
            r.next();
            same(r.getString("IS_AUTOINCREMENT"), "YES", "the metadata says that the key comes from the server");
        }
        fails(() -> {
            try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT id FROM invoice")) {
                r.next();
                return r.getInt(1);
            }
        }, "getInt() of an ID is an error");
        finish();
    }
}
