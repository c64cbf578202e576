# pgquad: an RDF store inside PostgreSQL. `make help` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.PHONY: help setup install sql up down reset psql serve serve-down cluster cluster-down demo test lint fmt docs bench

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## install what building, testing and linting need; nothing when it is there
	@dev/setup.sh

install: ## build the extension and install it into PostgreSQL 15
	@dev/setup.sh build
	@dev/install.sh

sql: ## write sql/pgquad--VERSION.sql, the installed script, anew
	@dev/setup.sh sql
	@dev/install.sh
	@dev/sql.sh write

up: install ## start the private server (127.0.0.1, port PGQUAD_PORT or 54329), print the psql line
	@dev/server.sh up

down: ## stop the private server and its endpoint
	@dev/http.sh down >/dev/null
	@dev/server.sh down

reset: ## stop the private server and remove its data
	@dev/server.sh reset

psql: up ## psql on the private server
	@dev/server.sh psql

serve: up ## start the private server and its SPARQL endpoint (127.0.0.1, port PGQUAD_HTTP_PORT or 7333), print its address
	@dev/http.sh up

serve-down: ## stop the endpoint
	@dev/http.sh down

cluster: install ## start a cluster of three nodes (127.0.0.1, ports PGQUAD_CLUSTER_PORT or 54341 and the next two), print the psql lines
	@dev/cluster.sh up

cluster-down: ## stop the cluster
	@dev/cluster.sh down

demo: export PGQUAD_TOGETHER = yes
demo: up ## load a small data set, ask it questions in SPARQL, start the endpoint
	@dev/demo.sh

test: setup ## everything: lints, unit tests, SQL, isolation, crash, standby ... (SUITES="pgtap crash" for some)
	@dev/test.sh $(SUITES)

lint: setup ## rustfmt, clippy, shellcheck, ruff, walls between modules, links between pages, what the image is built from, dependencies
	@dev/test.sh fmt clippy shell python walls pages image dependencies

fmt: ## format the Rust sources
	@cargo fmt --all

docs: ## build the documentation as a site, target/book, and check its links (needs mdbook)
	@dev/book/build.sh

bench: setup install ## run the benchmarks and write bench/results anew (BENCH=--quick: small data, nothing written)
	@bench/run-all $(BENCH)
