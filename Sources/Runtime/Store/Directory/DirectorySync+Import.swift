import Cluster

// Making an import a version of the shared store.

extension DirectorySync {
  /// A version while its parts are staged.
  private final class Writing {
    let one: Import
    /// The shared store's version on which it is based.
    let expected: Int
    let clock: Int
    let made: ContactList
    let change: DirectoryFile.Change
    var parts: [DirectoryPartName] = []
    var pieces: [DirectoryPiece] = []
    var pages: [String]?
    var dropped: [String] = []
    var next = 0
    init(_ one: Import, expected: Int, clock: Int, draft: DirectoryFile.Draft) {
      (self.one, self.expected, self.clock, made, change) = (one, expected, clock, draft.made, draft.change)
    }
    func head(_ version: Int) -> DirectoryHead {
      DirectoryHead(
        version: version, from: expected, contacts: change.entries, parts: pages == nil ? parts : nil, pages: pages ?? [])
    }
  }

  func begin(_ one: Import) {
    current = one
    let scope = one.scope
    askHead(scope) { [unowned self] head, version, clock in
      let here = try file.syncState(scope)
      let isCurrent = here.isCopy && here.version == version && head != nil
      let fault = faults[scope]
      if let fault, !fault.isUnreadable, !isCurrent { throw StoreError(fault.why) }
      // the shared store's version has precedence: it is later, or the local one was made without it
      if !isCurrent, head != nil, fault == nil, version > here.base {
        if one.isOwn {
          current = nil
          return compare(scope)
        }
        return again(one) ? () : finish(.failure(.conflict))
      }
      // another import has brought this own directory to the shared store meanwhile
      if one.isOwn, here.base > 0 {
        return finish(.success(.init(version: version, entries: 0, added: 0, changed: 0, removed: 0)))
      }
      let draft = try file.draft(one.list, into: scope, replaces: one.replaces, isWhole: !isCurrent)
      if isCurrent, draft.made.count == 0, draft.dropped.isEmpty { return finish(.success(draft.change)) }
      let writing = Writing(one, expected: version, clock: clock, draft: draft)
      // if the shared store has another version than this node, all parts that its head names are dropped
      let dropped = isCurrent ? draft.dropped : (head?.parts ?? []) + draft.dropped
      writing.dropped = Set(dropped.map(\.name) + (head?.pages ?? [])).sorted()
      name(draft, writing)
      stage(writing)
    }
  }

  private func finish(_ result: Result<DirectoryFile.Change, DirectoryService.Fault>) {
    let done = current?.done
    current = nil
    done?(result)
  }

  private func name(_ draft: DirectoryFile.Draft, _ writing: Writing) {
    for part in draft.parts {
      switch part {
      case .kept(let name): writing.parts.append(name)
      case .made(let first, let lines):
        let name = newName()
        writing.parts.append(.init(first: first, name: name))
        writing.pieces.append(DirectoryPiece(name, Array(lines.utf8)))
      }
    }
    guard writing.parts.count > headParts else { return }
    var pages: [String] = []
    for start in stride(from: 0, to: writing.parts.count, by: headParts) {
      let name = newName()
      pages.append(name)
      let parts = writing.parts[start..<min(writing.parts.count, start + headParts)]
      writing.pieces.append(DirectoryPiece(name, DirectoryText.page(parts)))
    }
    writing.pages = pages
  }

  private func stage(_ writing: Writing) {
    attempt(writing.one.scope) {
      guard writing.next < writing.pieces.count else { return try commit(writing) }
      let end = min(writing.pieces.count, writing.next + Cluster.Limits.partsPerRequest)
      ask(.stageDirectoryParts(Array(writing.pieces[writing.next..<end])), writing.one.scope) { [unowned self] _ in
        writing.next = end
        stage(writing)
      }
    }
  }

  private func commit(_ writing: Writing) throws {
    let scope = writing.one.scope
    let version = try nextVersion(writing.clock)
    let commit = DirectoryCommit(
      scope, from: Int64(writing.expected), to: Int64(version), head: DirectoryText.head(writing.head(version)),
      made: writing.pieces.map(\.name), dropped: writing.dropped)
    askToCommit(commit) { [unowned self] reply in
      guard case .committed(let outcome, _, let highest)? = reply else {
        // the commit may have succeeded without a reply
        return askHead(scope) { [unowned self] head, now, _ in
          guard now == version, head == writing.head(version) else { throw Fault.sharedStore }
          done(writing, version)
        }
      }
      last = max(last, Int(highest))
      switch outcome {
      case .done: done(writing, version)
      case .late: try self.commit(writing)
      case .conflict, .missing: if !again(writing.one) { finish(.failure(.conflict)) }
      case .full: throw StoreError("the shared store has \(Cluster.Limits.directories) directories, which is the limit")
      }
    }
  }

  /// Calls `then` with nil if there was no reply.
  private func askToCommit(_ commit: DirectoryCommit, _ then: @escaping (SharedStoreReply?) throws -> Void) {
    askOnce(.commitDirectory(commit), commit.scope) { result in
      switch result {
      case .success(let reply): try then(reply)
      case .failure(.timeout): try then(nil)
      case .failure: throw Fault.sharedStore
      }
    }
  }

  private func done(_ writing: Writing, _ version: Int) {
    counters.given.increment()
    mustExpire = mustExpire || !writing.dropped.isEmpty
    sharedStore.request(.broadcast(.directories))
    var change = writing.change
    change.version = version
    committed = Committed(
      scope: writing.one.scope, version: version, made: writing.made, change: change, done: current?.done)
    current = nil
    last = max(last, version)
    received()
  }
}
