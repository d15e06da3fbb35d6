// The entities of the old application.
import { Column, Entity, ManyToOne, PrimaryGeneratedColumn } from 'typeorm'

@Entity()
export class Customer {
  @PrimaryGeneratedColumn()
  id: number

  @Column('text')
  name: string
}

@Entity()
export class Order {
  @PrimaryGeneratedColumn('increment', { type: 'bigint' })
  id: string

  @ManyToOne(() => Customer)
  customer: Customer
}
