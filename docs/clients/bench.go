// A client program for pgtrial: single rows by pgx. The server is that of PGHOST, PGUSER and the like.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

const operations = 500
const query = "SELECT abalance FROM pgbench_accounts WHERE aid = $1"

func main() {
	lines, background := json.NewEncoder(os.Stdout), context.Background()
	lines.Encode(map[string]any{"program": "pgx", "version": "5"})
	connection, err := pgx.Connect(background, "")
	if err != nil {
		log.Fatal(err)
	}
	var batch, balance int
	for read, _ := fmt.Scanf("go %d\n", &batch); read == 1; read, _ = fmt.Scanf("go %d\n", &batch) {
		begin := time.Now()
		for i := 0; i < operations; i++ {
			if err := connection.QueryRow(background, query, 1+rand.Intn(100000)).Scan(&balance); err != nil {
				log.Fatal(err)
			}
		}
		ms := float64(time.Since(begin).Nanoseconds()) / 1e6
		lines.Encode(map[string]any{"batch": batch, "ms": ms, "operations": operations})
	}
}
