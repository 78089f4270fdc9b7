"""Another program at work on the gateway's database: holds its write lock until standard input ends.

    store_lock.py FILE
"""
import json, sqlite3, sys

base = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
base.execute("BEGIN IMMEDIATE")
print(json.dumps({"event": "locked"}), flush=True)
sys.stdin.read()
base.execute("ROLLBACK")
