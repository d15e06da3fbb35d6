package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// The models of the old application.
type OldCustomer struct {
	ID   int32 `gorm:"primaryKey"`
	Name string
}

func (OldCustomer) TableName() string { return "customers" }

// And after its table was converted.
type Customer struct {
	ID   int64 `gorm:"primaryKey;autoIncrement:false;default:snowflake_nextval()"`
	Name string
}

// With snowflake sequences
type Product struct {
	ID   uint
	Name string
}

var count, failed int

func ok(passed bool, name string, got ...any) {
	count++
	if passed {
		fmt.Printf("ok %d - %s\n", count, name)
		return
	}
	failed++
	fmt.Printf("not ok %d - %s\n# got: %v\n", count, name, got)
}

func must(err error) {
	if err != nil {
		fmt.Println("#", err)
		os.Exit(1)
	}
}

func usePgx() {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	must(err)
	defer c.Close(ctx)
	var id int64
	var name string
	must(c.QueryRow(ctx, "INSERT INTO invoices (name) VALUES ('pgx') RETURNING id").Scan(&id))
	must(c.QueryRow(ctx, "SELECT name FROM invoices WHERE id = $1", id).Scan(&name))
	ok(name == "pgx" && id > 1e18, "pgx: RETURNING", id)
	n, err := c.CopyFrom(ctx, pgx.Identifier{"invoices"}, []string{"name"},
		pgx.CopyFromSlice(5000, func(i int) ([]any, error) { return []any{fmt.Sprint(i)}, nil }))
	ok(err == nil && n == 5000, "pgx: CopyFrom without IDs", n, err)
	rows, err := c.Query(ctx, "SELECT snowflake_nextval($1)", 1000)
	must(err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	ok(err == nil && len(ids) == 1000 && ids[0] < ids[999], "pgx: a block of IDs", err)
	batch := &pgx.Batch{}
	for i := 0; i < 300; i++ {
		batch.Queue("INSERT INTO invoices (name) VALUES ($1) RETURNING id", fmt.Sprint("batch ", i))
	}
	results := c.SendBatch(ctx, batch)
	right := 0
	for i := 0; i < 300; i++ {
		must(results.QueryRow().Scan(&ids[i]))
	}
	must(results.Close())
	for i := 0; i < 300; i++ {
		must(c.QueryRow(ctx, "SELECT name FROM invoices WHERE id = $1", ids[i]).Scan(&name))
		if name == fmt.Sprint("batch ", i) {
			right++
		}
	}
	ok(right == 300, "pgx: a batch", right)
	var small int32
	err = c.QueryRow(ctx, "SELECT id FROM invoices LIMIT 1").Scan(&small)
	ok(err != nil, "pgx: an ID in an int32 is an error")
}

func finish() {
	fmt.Printf("1..%d\n", count)
	if failed > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}

func main() {
	db, err := gorm.Open(postgres.Open(os.Getenv("DATABASE_URL")), &gorm.Config{Logger: logger.Discard})
	must(err)
	var altered []string
	note := func(d *gorm.DB) {
		if sql := d.Statement.SQL.String(); strings.HasPrefix(sql, "ALTER") || strings.HasPrefix(sql, "CREATE") {
			altered = append(altered, sql)
		}
	}
	must(db.Callback().Raw().After("gorm:raw").Register("note", note))
	if len(os.Args) > 1 {
		must(db.AutoMigrate(&Product{}, &OldCustomer{}))
		altered = nil
		must(db.AutoMigrate(&Product{}, &OldCustomer{}))
		ok(len(altered) == 0, "GORM: AutoMigrate changes nothing the second time", altered)
		product, customer := Product{Name: "a"}, OldCustomer{Name: "a"}
		must(db.Create(&product).Error)
		must(db.Create(&customer).Error)
		ok(product.ID > 1e18, "GORM: a uint key has snowflake IDs", product)
		ok(customer.ID == 1, "GORM: an int32 key stays local", customer)
		finish()
	}
	must(db.Exec("CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_convert").Error)

	must(db.AutoMigrate(&Invoice{}, &Line{}))
	altered = nil
	must(db.AutoMigrate(&Invoice{}, &Line{}))
	ok(len(altered) == 0, "GORM: AutoMigrate changes nothing the second time", altered)
	line := Line{Invoice: Invoice{Name: "nested"}}
	must(db.Create(&line).Error)
	ok(line.ID > 1e18 && line.InvoiceID == line.Invoice.ID && line.InvoiceID > 1e18, "GORM: Create", line)
	many := make([]Invoice, 1000)
	for i := range many {
		many[i].Name = fmt.Sprint(i)
	}
	must(db.CreateInBatches(&many, 100).Error)
	right := 0
	for _, invoice := range many {
		var found Invoice
		if db.First(&found, invoice.ID).Error == nil && found.Name == invoice.Name {
			right++
		}
	}
	ok(right == 1000, "GORM: CreateInBatches gives each its ID", right)
	text, err := json.Marshal(line.Invoice)
	must(err)
	var back Invoice
	must(json.Unmarshal(text, &back))
	ok(back.ID == line.InvoiceID, "JSON and back", string(text))
	ok(strings.Contains(string(text), fmt.Sprintf(`"id":"%d"`, back.ID)), "as a string", string(text))
	usePgx()

	// Taken over
	must(db.AutoMigrate(&OldCustomer{}))
	must(db.Create(&OldCustomer{Name: "old"}).Error)
	must(db.Exec("SELECT snowflake_convert('customers', generator => 'snowflake_nextval()')").Error)
	ok(db.Create(&OldCustomer{Name: "x"}).Error != nil, "GORM: the old model fails")
	customer := Customer{Name: "new"}
	must(db.Create(&customer).Error)
	var found Customer
	ok(db.First(&found, customer.ID).Error == nil && found.Name == "new" && customer.ID > 1e18,
		"GORM: a converted table", customer)
	altered = nil
	must(db.AutoMigrate(&Customer{}))
	ok(len(altered) == 0, "GORM: AutoMigrate changes nothing in it", altered)

	finish()
}
