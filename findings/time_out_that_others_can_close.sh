#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In Clojure's core.async, a time-out is a channel that closes when the time has passed. Two calls of (timeout 3000) get
# the same channel if their deadlines are less than 10 ms apart. Whoever closes its own, to be rid of it, ends the
# other's time-out as well: a wait of 3 s gives up at once. What one puts into it, the other takes.
# Why: the library keeps its time-out channels in a list, and gives out one whose deadline is near.
# Guessed before: that each call makes a channel of its own.
# Two calls may be more than 10 ms apart on a busy machine, so the program calls until two have got the same channel.
# Seen with core.async 1.9.865 and Clojure 1.12.6 (Maven) under OpenJDK 17. Needs java, mvn, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > pom.xml <<'TEXT'
<project><modelVersion>4.0.0</modelVersion><groupId>seen</groupId><artifactId>seen</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.clojure</groupId><artifactId>clojure</artifactId><version>1.12.6</version></dependency>
<dependency><groupId>org.clojure</groupId><artifactId>core.async</artifactId><version>1.9.865</version></dependency>
</dependencies></project>
TEXT
cat > seen.clj <<'CODE'
(require '[clojure.core.async :refer [<!! >!! alts!! chan close! timeout]])

(defn pair []
  (loop [calls 0]
    (let [mine (timeout 3000) yours (timeout 3000)]
      (cond (identical? mine yours) [mine yours]
            (< calls 1000) (recur (inc calls))
            :else [mine yours]))))

(defn outcome [mine act]
  (let [reply (chan)
        over (promise)
        wait (future (let [[value channel] (alts!! [reply mine])]
                       (deliver over true)
                       (str (if (= channel mine) "timed out" "got a reply") ", value " (pr-str value))))]
    (Thread/sleep 200)
    (act)
    (str (if (deref over 1500 false) "at once: " "later: ") @wait)))

(let [[mine yours] (pair)]
  (println "one channel:" (identical? mine yours))
  (println "nothing done," (outcome mine (fn []))))
(let [[mine yours] (pair)]
  (println "the other one closed," (outcome mine #(close! yours))))
(let [[mine yours] (pair)]
  (println "put into the other one," (outcome mine #(>!! yours :letter))))
(System/exit 0)
CODE
mvn -q dependency:copy-dependencies -DoutputDirectory=jars > mvn.log
java -cp 'jars/*' clojure.main seen.clj | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
one channel: true
nothing done, later: timed out, value nil
the other one closed, at once: timed out, value nil
put into the other one, at once: timed out, value :letter
TEXT
