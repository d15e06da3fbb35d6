// The entities of an application whose keys have 64 bits: they stay as they are.
import { Column, Entity, ManyToOne, PrimaryGeneratedColumn } from 'typeorm'

@Entity('person')
export class Customer {
  @PrimaryGeneratedColumn('increment', { type: 'bigint' })
  id: string

  @Column('text')
  name: string
}

@Entity('visit')
export class Order {
  @PrimaryGeneratedColumn('increment', { type: 'bigint' })
  id: string

  @ManyToOne(() => Customer)
  customer: Customer
}
