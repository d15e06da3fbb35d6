import java.util.*;
import javax.persistence.*;

public class Use extends Tap {
    static EntityManagerFactory factory;

    static EntityManager open() {
        EntityManager em = factory.createEntityManager();
        em.getTransaction().begin();
        return em;
    }

    static Long add(EntityManager em, Class<?> k, String name) throws Exception {
        Object o = k.getDeclaredConstructor().newInstance();
        k.getDeclaredField("name").set(o, name);
        em.persist(o);
        em.flush();
        return (Long) k.getDeclaredField("id").get(o);
    }

    static Object nameOf(EntityManager em, String table, Long id) {
        List<?> names = em.createNativeQuery("SELECT name FROM " + table + " WHERE id = " + id).getResultList();
        return names.isEmpty() ? null : names.get(0);
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> settings = new HashMap<>();
        settings.put("javax.persistence.jdbc.url", URL);
        settings.put("javax.persistence.jdbc.driver", "org.postgresql.Driver");
        // One session
        settings.put("eclipselink.connection-pool.default.initial", "1");
        settings.put("eclipselink.connection-pool.default.max", "1");
        factory = Persistence.createEntityManagerFactory("shop", settings);

        EntityManager em = open();
        Long id = add(em, Invoice.class, "a");
        ok(id > 1e18, "@ReturnInsert: a snowflake ID", id);
        same(nameOf(em, "invoice", id), "a", "and it is the row's");
        int right = 0;
        for (int i = 0; i < 200; i++)
            if (("" + i).equals(nameOf(em, "invoice", add(em, Invoice.class, "" + i))))
                right++;
        same(right, 200, "also of many");
        if (args[0].equals("sequences")) {
            Long last = 0L;
            for (int i = 0; i < 3; i++) {
                same(nameOf(em, "customer", add(em, Customer.class, "b" + i)), "b" + i, "IDENTITY has the ID of its row");
                last = add(em, Counted.class, "c" + i);
                same(nameOf(em, "counted", last), "c" + i, "also after another table");
            }
            ok(last > 1e18, "a snowflake ID", last);
        } else {
            Long counted = add(em, Counted.class, "x");
            same(add(em, Customer.class, "b"), counted, "IDENTITY has another table's number");
        }
        finish();
    }
}
