import Cluster

// Reading a version of the shared store into the local copy.

extension DirectorySync {
  /// A version while its parts are read. A class, as closures would copy the gathered parts of a struct.
  private final class Reading {
    let scope: Scope
    let head: DirectoryHead
    /// The parts of the local copy.
    let before: [DirectoryPartName]
    var parts: [DirectoryPartName] = []
    /// Names of parts, or of pages, that must be read.
    var wanted: [String] = []
    var next = 0
    var pages: [UInt8] = []
    var reader = ContactReader(.csv)
    init(_ scope: Scope, _ head: DirectoryHead, before: [DirectoryPartName]) {
      (self.scope, self.head, self.before) = (scope, head, before)
    }
  }

  func compare(_ scope: Scope) {
    askHead(scope) { [unowned self] head, version, clock in
      try file.saw([scope: version])
      let here = try file.syncState(scope)
      guard version > 0 else { return here.base > 0 ? report(scope, .lost) : () }
      guard let head else { throw Fault.unreadable("its head is missing or not signed") }
      if here.isCopy, here.version == version { return served(scope) }
      // The served version stays: a node cannot know why the shared store has an older one.
      if here.isCopy, version < here.version { return report(scope, .older(version)) }
      if try file.isLate(version, scope) { return renew(scope, head, clock: clock) }
      try flatten(scope, head, before: here.isCopy ? file.partNames(scope) : [])
    }
  }

  /// Commits the same contents under a later version, as local devices already have later versions than this one.
  private func renew(_ scope: Scope, _ head: DirectoryHead, clock: Int) {
    attempt(scope) {
      var next = head
      (next.from, next.version) = (head.version, try nextVersion(clock))
      let commit = DirectoryCommit(scope, from: Int64(head.version), to: Int64(next.version), head: DirectoryText.head(next))
      ask(.commitDirectory(commit), scope) { [unowned self] reply in
        guard case .committed(let outcome, _, let highest) = reply else { throw Fault.sharedStore }
        last = max(last, Int(highest))
        received()
        if outcome == .late { renew(scope, head, clock: last) }
        if outcome == .done { sharedStore.request(.broadcast(.directories)) }
      }
    }
  }

  /// Later than all versions of the shared store and this node. Even: odd ones belong to a single device.
  func nextVersion(_ clock: Int) throws -> Int {
    let highest = try max(last, clock, file.highest())
    guard highest < 1 << 53 - 4 else { throw StoreError("the shared store has no version left: delete its directories") }
    return (highest + 2) & ~1
  }

  private func flatten(_ scope: Scope, _ head: DirectoryHead, before: [DirectoryPartName]) throws {
    let reading = Reading(scope, head, before: before)
    if let parts = head.parts { return try begin(reading, parts) }
    reading.wanted = head.pages
    readPages(reading)
  }

  private func readPages(_ reading: Reading) {
    read(reading) {
      reading.pages += $0
    } then: { [unowned self] in
      guard let parts = DirectoryText.parts(reading.pages) else { throw Fault.unreadable("its pages are not readable") }
      try begin(reading, parts)
    }
  }

  private func begin(_ reading: Reading, _ parts: [DirectoryPartName]) throws {
    let known = Set(reading.before)
    reading.parts = parts
    reading.next = 0
    if let committed, committed.scope == reading.scope, committed.version == reading.head.version {
      return try apply(reading, committed.made)
    }
    reading.wanted = parts.lazy.filter { !known.contains($0) }.map(\.name)
    try reading.reader.read(Array((ContactReader.head + "\n").utf8))
    read(reading) {
      try reading.reader.read($0)
    } then: { [unowned self] in
      counters.fetched.increment()
      try apply(reading, reading.reader.finish())
    }
  }

  private func apply(_ reading: Reading, _ made: ContactList) throws {
    try file.next(reading.head, parts: reading.parts, made: made, before: reading.before, in: reading.scope)
    served(reading.scope)
    changed()
    if let committed, committed.scope == reading.scope, committed.version <= reading.head.version {
      landed()
      self.committed = nil
    }
  }

  /// Reads the wanted parts, in order.
  private func read(_ reading: Reading, _ use: @escaping ([UInt8]) throws -> Void, then: @escaping () throws -> Void) {
    attempt(reading.scope) {
      guard reading.next < reading.wanted.count else { return try then() }
      let end = min(reading.wanted.count, reading.next + Cluster.Limits.partsPerRequest)
      let names = Array(reading.wanted[reading.next..<end])
      ask(.directoryParts(names), reading.scope) { [unowned self] reply in
        guard case .directoryParts(let pieces) = reply else { throw Fault.sharedStore }
        guard pieces.map(\.name) == names else { return missed(reading) }
        for piece in pieces { try use(piece.content) }
        reading.next = end
        read(reading, use, then: then)
      }
    }
  }

  /// A part is missing or not signed by us: the version was replaced meanwhile, or it is incomplete.
  private func missed(_ reading: Reading) {
    askHead(reading.scope) { [unowned self] head, version, _ in
      guard version == reading.head.version, head != nil else { return received() }
      throw Fault.unreadable("parts of it are missing or not signed")
    }
  }
}
