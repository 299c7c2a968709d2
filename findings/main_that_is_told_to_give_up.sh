#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In Haskell (GHC), a worker waits for an MVar that nobody will ever fill. Its `finally` answers to the main thread,
# which waits for that. The worker gets BlockedIndefinitelyOnMVar. The main thread gets the same exception at the same
# time, although the answer would come, and does come if the main thread waits again. With a time-out of 60 s around its
# wait, it gets the answer at once.
# Why: the run-time system looks for the threads that no running thread can reach, and the main thread is reached by the
# worker only. With a time-out, the thread that will end the time-out reaches it. The documentation of
# Control.Concurrent has the rule: a thread that is not reachable is sent an exception.
# Guessed before: that the exception hits only who can't be helped.
# Seen with GHC 9.0.2, -threaded. Needs Debian 12's ghc.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > Seen.hs <<'CODE'
import Control.Concurrent
import Control.Exception
import Control.Monad
import System.IO
import System.Timeout

-- A worker that nobody can help, and what it answers.
worker :: IO (MVar String)
worker = do
  answer <- newEmptyMVar
  never <- newEmptyMVar :: IO (MVar ())
  _ <- forkIO (void (tried (takeMVar never)) `finally` putMVar answer "answer")
  return answer

tried :: IO a -> IO (Either BlockedIndefinitelyOnMVar a)
tried = try

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  first <- worker
  tried (takeMVar first) >>= putStrLn . ("without a time-out: " ++) . show
  tried (takeMVar first) >>= putStrLn . ("waits again: " ++) . show
  second <- worker
  tried (timeout 60000000 (takeMVar second)) >>= putStrLn . ("with a time-out of 60 s: " ++) . show
CODE
ghc -v0 -O0 -threaded Seen.hs -o seen
./seen | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
without a time-out: Left thread blocked indefinitely in an MVar operation
waits again: Right "answer"
with a time-out of 60 s: Right (Just "answer")
TEXT
