import java.util.*;
import javax.persistence.*;
import org.hibernate.*;
import org.hibernate.cfg.Configuration;

@Entity
@Table(name = "customer")
class Customer {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    Long id;
    String name;
}

@Entity
@Table(name = "event")
class Event {
    @Id
    @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "numbers")
    @SequenceGenerator(name = "numbers", sequenceName = "event_numbers", allocationSize = 50)
    Long id;
    String name;
}

@Entity
@Table(name = "color")
class Color {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    Integer id;
    String name;
}

// After its table was converted
@Entity
@Table(name = "event")
class ConvertedEvent {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    Long id;
    String name;
}

public class Use extends Tap {
    static SessionFactory factory(String ddl) {
        Configuration c = new Configuration();
        for (Class<?> k : new Class<?>[] {Invoice.class, Customer.class, Event.class, Color.class})
            c.addAnnotatedClass(k);
        return configure(c, ddl);
    }

    static SessionFactory configure(Configuration c, String ddl) {
        c.setProperty("hibernate.connection.url", URL);
        c.setProperty("hibernate.connection.driver_class", "org.postgresql.Driver");
        c.setProperty("hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect");
        c.setProperty("hibernate.id.new_generator_mappings", "true");
        c.setProperty("hibernate.jdbc.batch_size", "50");
        if (ddl != null)
            c.setProperty("hibernate.hbm2ddl.auto", ddl);
        return c.buildSessionFactory();
    }

    // Save a hundred objects, and find each again by its key; the last key.
    static long use(SessionFactory factory, Class<?> k, String what) throws Exception {
        var id = k.getDeclaredField("id");
        var name = k.getDeclaredField("name");
        List<Object> saved = new ArrayList<>();
        int right = 0;
        Session s = factory.openSession();
        s.beginTransaction();
        for (int i = 0; i < 100; i++) {
            Object o = k.getDeclaredConstructor().newInstance();
            name.set(o, what + i);
            s.save(o);
            saved.add(o);
        }
        s.getTransaction().commit();
        s.clear();
        s.beginTransaction();
        for (Object o : saved)
            if (name.get(s.get(k, (Number) id.get(o))).equals(name.get(o)))
                right++;
        s.getTransaction().commit();
        s.close();
        same(right, 100, what + ": each object has its key");
        return ((Number) id.get(saved.get(99))).longValue();
    }

    // The mappings as they are, IDENTITY and a pooled sequence
    static void useSequences() throws Exception {
        SessionFactory f = factory("update");
        for (int i = 0; i < 3; i++) {
            ok(use(f, Customer.class, "IDENTITY") > 1e18, "IDENTITY: snowflake IDs", null);
            ok(use(f, Event.class, "pooled SEQUENCE") > 1e18, "SEQUENCE: snowflake IDs", null);
            ok(use(f, Color.class, "an Integer") < 1e6, "an Integer key stays local", null);
            f.close();
            f = factory("validate");
        }
        f.close();
        finish();
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 0)
            useSequences();
        SessionFactory f = factory("update");
        ok(use(f, Invoice.class, "new") > 1e18, "new tables have snowflake IDs", null);
        ok(use(f, Customer.class, "old") < 1e6, "old keys are small", null);
        ok(use(f, Event.class, "sequence") < 1e6, "also from a sequence", null);
        for (String table : new String[] {"customer", "event"})
            sql("SELECT snowflake_convert('" + table + "', generator => 'snowflake_nextval()')");
        ok(use(f, Customer.class, "converted") > 1e18, "new keys are snowflake IDs", null);
        ok(use(f, Event.class, "SEQUENCE") < 1e6, "but where it calls a sequence it goes on", null);
        f.close();
        f = configure(new Configuration().addAnnotatedClass(ConvertedEvent.class), null);
        ok(use(f, ConvertedEvent.class, "IDENTITY") > 1e18, "until the mapping is changed", null);
        f.close();
        // Throws where a table does not go with its mapping.
        factory("validate").close();
        ok(true, "hbm2ddl validates the tables", null);
        finish();
    }
}
