// The entities after their tables were converted.
import { Column, Entity, ManyToOne, PrimaryColumn } from 'typeorm'

@Entity()
export class Customer {
  @PrimaryColumn({ type: 'bigint', default: () => 'snowflake_nextval()' })
  id: string

  @Column('text')
  name: string
}

@Entity()
export class Order {
  @PrimaryColumn({ type: 'bigint', default: () => 'snowflake_nextval()' })
  id: string

  @ManyToOne(() => Customer)
  customer: Customer
}
