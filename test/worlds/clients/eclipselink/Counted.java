import javax.persistence.*;

@Entity
@Table(name = "counted")
public class Counted {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    Long id;
    String name;
}
