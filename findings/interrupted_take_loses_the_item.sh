#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A fiber waits in a queue's take. Another offers an item, which is accepted, and interrupts the fiber at once. With
# ZIO 2.1.21 the take ends as interrupted, and the item is gone: it is not in the queue, and no later take gets it. So a
# take with a time-out may lose an item that comes when the time is over.
# Why: the offer finds a waiting take and completes its promise, so the item isn't stored. The interruption discards the
# promise with the item in it.
# Guessed before: that the item stays in the queue, as with Queue of cats-effect 3.6.3 and with ZIO's TQueue, or that
# the take succeeds.
# The fiber may have run before it is interrupted, so each line is what most of 300 rounds showed (289 here). If it has,
# the take succeeds.
# Seen with Scala 3.3.6 under OpenJDK 17. Needs java, mvn, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > pom.xml <<'TEXT'
<project><modelVersion>4.0.0</modelVersion><groupId>seen</groupId><artifactId>seen</artifactId><version>1</version>
<dependencies>
<dependency>
  <groupId>org.scala-lang</groupId><artifactId>scala3-compiler_3</artifactId><version>3.3.6</version>
</dependency>
<dependency><groupId>org.typelevel</groupId><artifactId>cats-effect_3</artifactId><version>3.6.3</version></dependency>
<dependency><groupId>dev.zio</groupId><artifactId>zio_3</artifactId><version>2.1.21</version></dependency>
</dependencies></project>
TEXT
cat > Seen.scala <<'CODE'
import cats.effect.{IO, IOApp}
import cats.effect.std.Queue as CatsQueue
import cats.syntax.all.*
import scala.concurrent.duration.DurationInt
import zio.{Console, Duration, Queue, UIO, ZIO, ZIOAppDefault}
import zio.stm.TQueue

val rounds = (1 to 300).toList

// Each round says whether the take has succeeded, and how many items are left.
def show(name: String, seen: List[(Boolean, Int)]): String =
    val (outcome, _) = seen.groupBy(identity).maxBy(_._2.size)
    val place = if outcome._1 then "taken" else if outcome._2 == 1 then "in the queue" else "lost"
    s"$name: the item is $place"

object SeenZio extends ZIOAppDefault:
    def trial(name: String, take: UIO[Int], offer: UIO[Any], size: UIO[Int], empty: UIO[Any]) =
        ZIO.foreach(rounds) { _ =>
            for
                fiber <- take.fork
                _ <- ZIO.sleep(Duration.fromMillis(2))
                _ <- offer
                end <- fiber.interrupt
                left <- size
                _ <- empty
            yield (end.isSuccess, left)
        }.flatMap(seen => Console.printLine(show(name, seen)))

    def run = for
        bounded <- Queue.bounded[Int](4)
        _ <- trial("ZIO, bounded", bounded.take, bounded.offer(1), bounded.size, bounded.takeAll)
        unbounded <- Queue.unbounded[Int]
        _ <- trial("ZIO, unbounded", unbounded.take, unbounded.offer(1), unbounded.size, unbounded.takeAll)
        stm <- TQueue.bounded[Int](4).commit
        _ <- trial("ZIO, TQueue", stm.take.commit, stm.offer(1).commit, stm.size.commit, stm.takeAll.commit)
    yield ()

object SeenCats extends IOApp.Simple:
    def trial(name: String, queue: CatsQueue[IO, Int]) =
        rounds.traverse { _ =>
            for
                fiber <- queue.take.start
                _ <- IO.sleep(2.millis)
                _ <- queue.offer(1)
                _ <- fiber.cancel
                end <- fiber.join
                left <- queue.size
                _ <- queue.tryTake
            yield (end.isSuccess, left)
        }.flatMap(seen => IO.println(show(name, seen)))

    def run = for
        bounded <- CatsQueue.bounded[IO, Int](4)
        _ <- trial("cats-effect, bounded", bounded)
        unbounded <- CatsQueue.unbounded[IO, Int]
        _ <- trial("cats-effect, unbounded", unbounded)
    yield ()
CODE
mvn -q dependency:copy-dependencies -DoutputDirectory=jars > mvn.log
java -cp 'jars/*' dotty.tools.dotc.Main -classpath "$(echo jars/*.jar | tr ' ' :)" Seen.scala
{
    java -cp 'jars/*:.' SeenZio
    java -cp 'jars/*:.' SeenCats 2> cats.log
} | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
ZIO, bounded: the item is lost
ZIO, unbounded: the item is lost
ZIO, TQueue: the item is in the queue
cats-effect, bounded: the item is in the queue
cats-effect, unbounded: the item is in the queue
TEXT
