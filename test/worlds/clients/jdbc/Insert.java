import java.sql.*;
import java.util.*;

public class Insert {
    static long insert(Connection c, String name) throws SQLException {
        return insertAll(c, List.of(name)).get(0);
    }

    static List<Long> insertAll(Connection c, List<String> names) throws SQLException {
        List<Long> ids = new ArrayList<>();
        PreparedStatement p = c.prepareStatement("INSERT INTO invoice (name) VALUES (?)", new String[] {"id"});
        try (p) {
            for (String name : names) {
                p.setString(1, name);
                p.addBatch();
            }
            p.executeBatch();
            ResultSet keys = p.getGeneratedKeys();
            while (keys.next())
                ids.add(keys.getLong(1));
        }
        return ids;
    }
}
