# Two commands: `make run` from a fresh machine to a bridged call, `make test` for everything that is checked.
# What each target needs is installed by Scripts/install; a stamp makes the second time quick.
.PHONY: run release run-cluster faults adversary test numbers docs screenshots dist sanitize bench bench-jitter bench-ears soak fuzz clean

JOBS ?= 2

run:
	Scripts/install run
	Scripts/run

# What is deployed, measured and packed: .build/release/trunkline and .build/release/trunkline-lab.
release:
	Scripts/install run
	@echo "Building, optimised; the first time takes some minutes …"
	Scripts/build .build

# A whole cluster on this machine, one of whose nodes is killed: shared store, edges, three gateways.
run-cluster:
	Scripts/install cluster
	Scripts/run-cluster

# What nodes, shared store and networks do to a cluster under load, a fault after the other: an hour or more.
faults:
	Scripts/install faults
	Scripts/faults

# Every attack of docs/operate/security.md on a release build at its limits, and ten minutes of schemathesis: about an hour.
adversary:
	Scripts/install test
	Scripts/adversary

test:
	Scripts/install check
	Scripts/test

# The table of the world's numbering plans, of the version of PyPI's phonenumbers that it names, or of VERSION.
numbers:
	python3 Scripts/numbers $(VERSION)

# docs/ as a site with search, and the client SDK's documentation by the toolchain's docc below /sdk, into .build/docs.
docs:
	Scripts/install docs
	Scripts/site
	Scripts/docs

# Every state of the web phone and the status page, in light and dark, narrow and wide, into .build/screenshots/index.html; from them docs/images.
screenshots:
	Scripts/install test
	.venv/bin/python Scripts/screenshots

# Debian packages, a tarball and an OCI image, into dist/.
dist:
	Scripts/install dist
	Scripts/dist

# Everything, ours beside its peers: Bench/report/index.html, docs/benchmarks/index.md and the figures in README.md.
bench:
	Scripts/install bench
	Scripts/bench

# The jitter buffer alone, in under a minute.
bench-jitter:
	Scripts/install bench
	Scripts/bench jitter

# What Chromium and aiortc hear, on every network; goes on where it was stopped.
bench-ears:
	Scripts/install bench
	EARS_LIMIT=10800 EARS_OPTIONS=--full Scripts/bench ears

soak:
	Scripts/install test
	Scripts/soak

# Runs each fuzz target for SECONDS (default 60).
fuzz:
	Scripts/install run
	Scripts/fuzz

# The tests of media and of the client's engine under the address and the thread sanitizer.
sanitize:
	Scripts/install sanitize
	Scripts/sanitize

clean:
	rm -rf dist .build .build-* .venv run Bench/.build docs/.build
