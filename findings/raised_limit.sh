#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All that a limit allows is taken, and one more caller waits. Then the limit is raised from 1 to 3. In these libraries
# the waiter sleeps on:
#   1. database/sql of Go 1.26.8 (SetMaxOpenConns), Apache Commons Pool 2.13.1 (setMaxTotal, setMaxTotalPerKey),
#      Tomcat's JDBC pool 11.0.15 (setMaxActive): a newcomer gets a connection at once. The waiter times out meanwhile.
#   2. HikariCP 7.0.2 (setMaximumPoolSize), Agroal 2.8 (setMaxSize): if nobody comes, the waiter times out, too.
#   3. async-broadcast 0.7.2 (set_capacity): two senders that waited for room stay asleep, and the message of a third
#      overtakes theirs. The same happens if set_overflow(true) allows every message.
# Why: the limit is only a number that an arriving caller reads. Nothing tells those who read the old number.
# Guessed before: that the waiter is served when the limit is raised, as with deadpool 0.13.1, pond 2.7.1 (Go) and
# p-limit 7.3.3 (npm).
# Seen on Linux 6.18, with Go 1.26.8, OpenJDK 17 and Rust 1.95.0. Needs go, java, mvn, cargo, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir go java rust rust/src

cat > go/go.mod <<'TEXT'
module seen
go 1.23
TEXT
cat > go/main.go <<'CODE'
package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

type connection struct{}

func (connection) Prepare(string) (driver.Stmt, error) { return nil, errors.New("none") }
func (connection) Close() error                        { return nil }
func (connection) Begin() (driver.Tx, error)           { return nil, errors.New("none") }

type connector struct{}

func (connector) Connect(context.Context) (driver.Conn, error) { return connection{}, nil }
func (connector) Driver() driver.Driver                        { return nil }

func main() {
	database := sql.OpenDB(connector{})
	database.SetMaxOpenConns(1)
	borrow := func() string {
		limits, stop := context.WithTimeout(context.Background(), 1500*time.Millisecond)
		defer stop()
		if _, err := database.Conn(limits); err != nil {
			return "times out"
		}
		return "is served"
	}
	borrow()
	waiter := make(chan string)
	go func() { waiter <- borrow() }()
	for database.Stats().WaitCount != 1 {
		time.Sleep(time.Millisecond)
	}
	database.SetMaxOpenConns(3)
	time.Sleep(300 * time.Millisecond)
	fmt.Println("database/sql: newcomer", borrow()+", waiter", <-waiter)
}
CODE
(cd go && go run .) > seen.txt

cat > java/pom.xml <<'TEXT'
<project><modelVersion>4.0.0</modelVersion><groupId>seen</groupId><artifactId>seen</artifactId><version>1</version>
<dependencies>
<dependency>
  <groupId>org.apache.commons</groupId><artifactId>commons-pool2</artifactId><version>2.13.1</version>
</dependency>
<dependency>
  <groupId>org.apache.tomcat</groupId><artifactId>tomcat-jdbc</artifactId><version>11.0.15</version>
</dependency>
<dependency>
  <groupId>com.zaxxer</groupId><artifactId>HikariCP</artifactId><version>7.0.2</version>
</dependency>
<dependency>
  <groupId>io.agroal</groupId><artifactId>agroal-pool</artifactId><version>2.8</version>
</dependency>
<dependency>
  <groupId>io.agroal</groupId><artifactId>agroal-api</artifactId><version>2.8</version>
</dependency>
<dependency>
  <groupId>com.h2database</groupId><artifactId>h2</artifactId><version>2.3.232</version>
</dependency>
<dependency>
  <groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version>
</dependency>
</dependencies></project>
TEXT
cat > java/Seen.java <<'CODE'
import io.agroal.api.AgroalDataSource;
import io.agroal.api.configuration.supplier.AgroalDataSourceConfigurationSupplier;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import org.apache.commons.pool2.*;
import org.apache.commons.pool2.impl.*;

class Seen {
    static final int TIME_OUT = 1500;
    static final String H2 = "jdbc:h2:mem:seen";

    static String outcome(Callable<?> borrow) {
        try {
            borrow.call();
            return "is served";
        } catch (Exception e) {
            return "times out";
        }
    }

    static void trial(String name, boolean newcomer, Callable<?> borrow, Runnable raise) throws Exception {
        borrow.call();
        var waiter = new FutureTask<>(() -> outcome(borrow));
        var thread = new Thread(waiter);
        thread.start();
        do Thread.sleep(200);
        while (thread.getState() != Thread.State.TIMED_WAITING);
        raise.run();
        Thread.sleep(300);
        System.out.print(name + ": ");
        if (newcomer) System.out.print("newcomer " + outcome(borrow) + ", ");
        System.out.println("waiter " + waiter.get());
    }

    public static void main(String[] none) throws Exception {
        var pool = new GenericObjectPool<Object>(new BasePooledObjectFactory<Object>() {
            public Object create() { return new Object(); }
            public PooledObject<Object> wrap(Object object) { return new DefaultPooledObject<>(object); }
        });
        pool.setMaxTotal(1);
        trial("Commons Pool", true, () -> pool.borrowObject(TIME_OUT), () -> pool.setMaxTotal(3));

        var keyed = new GenericKeyedObjectPool<String, Object>(new BaseKeyedPooledObjectFactory<String, Object>() {
            public Object create(String key) { return new Object(); }
            public PooledObject<Object> wrap(Object object) { return new DefaultPooledObject<>(object); }
        });
        keyed.setMaxTotalPerKey(1);
        trial("Commons Pool, keyed", true, () -> keyed.borrowObject("a", TIME_OUT), () -> keyed.setMaxTotalPerKey(3));

        var tomcat = new org.apache.tomcat.jdbc.pool.DataSource();
        tomcat.setDriverClassName("org.h2.Driver");
        tomcat.setUrl(H2);
        tomcat.setInitialSize(1);
        tomcat.setMaxActive(1);
        tomcat.setMaxWait(TIME_OUT);
        trial("Tomcat", true, tomcat::getConnection, () -> tomcat.setMaxActive(3));

        var hikari = new com.zaxxer.hikari.HikariDataSource();
        hikari.setJdbcUrl(H2);
        hikari.setMaximumPoolSize(1);
        hikari.setConnectionTimeout(TIME_OUT);
        trial("HikariCP", false, hikari::getConnection, () -> hikari.getHikariConfigMXBean().setMaximumPoolSize(3));

        var agroal = AgroalDataSource.from(new AgroalDataSourceConfigurationSupplier().connectionPoolConfiguration(
            limits -> limits.maxSize(1).acquisitionTimeout(Duration.ofMillis(TIME_OUT))
                .connectionFactoryConfiguration(connections -> connections.jdbcUrl(H2))));
        trial("Agroal", false, agroal::getConnection,
              () -> agroal.getConfiguration().connectionPoolConfiguration().setMaxSize(3));
        System.exit(0);
    }
}
CODE
(cd java && mvn -q dependency:copy-dependencies -DoutputDirectory=jars > mvn.log)
(cd java && java -cp 'jars/*' Seen.java) >> seen.txt

cat > rust/Cargo.toml <<'TEXT'
[package]
name = "seen"
version = "0.1.0"
edition = "2021"
[dependencies]
async-broadcast = "=0.7.2"
TEXT
cat > rust/src/main.rs <<'CODE'
use async_broadcast::{broadcast, Receiver, Sender};
use std::{future::Future, pin::pin, sync::atomic::*, sync::Arc, task::*};

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn trial(name: &str, change: impl Fn(&mut Sender<u8>, &mut Receiver<u8>)) {
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes.clone());
    let mut context = Context::from_waker(&waker);
    let (mut sender, mut receiver) = broadcast(1);
    let (second, third) = (sender.clone(), sender.clone());
    sender.try_broadcast(1).unwrap();
    let (mut second, mut third) = (pin!(second.broadcast(2)), pin!(third.broadcast(3)));
    assert!(second.as_mut().poll(&mut context).is_pending() && third.as_mut().poll(&mut context).is_pending());
    change(&mut sender, &mut receiver);
    let woken = wakes.0.load(Ordering::SeqCst);
    println!("async-broadcast, {name}: {woken} woken, newcomer's message taken: {}", sender.try_broadcast(4).is_ok());
}

fn main() {
    trial("set_capacity", |sender, _| sender.set_capacity(3));
    trial("set_overflow", |sender, _| sender.set_overflow(true));
    trial("a receive", |_, receiver| assert_eq!(receiver.try_recv().unwrap(), 1));
}
CODE
(cd rust && cargo run --quiet) >> seen.txt

cat seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
database/sql: newcomer is served, waiter times out
Commons Pool: newcomer is served, waiter times out
Commons Pool, keyed: newcomer is served, waiter times out
Tomcat: newcomer is served, waiter times out
HikariCP: waiter times out
Agroal: waiter times out
async-broadcast, set_capacity: 0 woken, newcomer's message taken: true
async-broadcast, set_overflow: 0 woken, newcomer's message taken: true
async-broadcast, a receive: 1 woken, newcomer's message taken: true
TEXT
