package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/jackc/pgx/v4"
)

func main() {
	ctx := context.Background()
	db, err := pgx.Connect(ctx, "sslmode=disable")
	check(err)
	defer db.Close(ctx)
	check(register(ctx, db))

	// Inserts a row, gets its key, and finds the row by its key.
	var id, bob, pen, ink int64
	var name, item string
	check(db.QueryRow(ctx, "INSERT INTO customer (name) VALUES ($1) RETURNING id", "Ada").Scan(&id))
	same, err := fromText(toText(id))
	check(err)
	check(db.QueryRow(ctx, "SELECT name FROM customer WHERE id = $1", same).Scan(&name))
	fmt.Println("customer", id, toText(id), name)

	check(db.QueryRow(ctx, "INSERT INTO purchase (item) VALUES ($1) RETURNING id", "pen").Scan(&pen))
	check(db.QueryRow(ctx, "SELECT item FROM purchase WHERE id = $1", pen).Scan(&item))
	fmt.Println("purchase", toText(pen), item)

	check(db.QueryRow(ctx, "INSERT INTO customer (name) VALUES ($1) RETURNING id", "Bob").Scan(&bob))
	check(db.QueryRow(ctx, "INSERT INTO purchase (item) VALUES ($1) RETURNING id", "ink").Scan(&ink))
	var customers, purchases []int64
	check(db.QueryRow(ctx, "SELECT array_agg(id ORDER BY name) FROM customer WHERE id = ANY ($1)",
		[]int64{id, bob}).Scan(&customers))
	check(db.QueryRow(ctx, "SELECT array_agg(id ORDER BY item) FROM purchase WHERE id = ANY ($1)",
		[]int64{pen, ink}).Scan(&purchases))
	fmt.Println("arrays", strings.Trim(strings.ReplaceAll(fmt.Sprint(customers), " ", ","), "[]"),
		toText(purchases[0])+","+toText(purchases[1]))

	// A malformed key must raise an error.
	if _, err = fromText("malformed!"); err != nil {
		fmt.Println("malformed", 404)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
