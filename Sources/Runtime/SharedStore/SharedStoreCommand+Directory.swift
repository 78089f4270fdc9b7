import Cluster
import RESP

// Histories and directories.

extension SharedStoreCommand {
  init(ofHistory request: SharedStoreRequest, _ keys: SharedStoreKeys) {
    func key(_ user: String, _ rest: String) -> String { keys.key(SharedStoreKeys.user(user), rest) }
    switch request {
    case .addHistory(let call, let user, let row, let most, let keep):
      self.init(
        script: .addHistory, tag: SharedStoreKeys.user(user), keys: [key(user, "history"), key(user, "where")],
        arguments: [
          bytes(call.description), Array(keys.sealed([UInt8(ascii: "{")] + row, at: key(user, "history")).dropFirst()),
          bytes(most),
          milliseconds(keep),
        ], reading: .added)
    case .history(let user, let before, let most, let keep):
      self.init(
        script: .history, tag: SharedStoreKeys.user(user), keys: [key(user, "history")],
        arguments: [bytes(before ?? 0), bytes(most), milliseconds(keep)], reading: .history(user))
    case .forgetHistory(let user):
      self.init(
        script: .forgetHistory, tag: SharedStoreKeys.user(user), keys: [key(user, "history")], arguments: [], reading: .count)
    default: preconditionFailure("a request that is of no history")
    }
  }

  init(ofDirectory request: SharedStoreRequest, _ keys: SharedStoreKeys) {
    let tag = SharedStoreKeys.directories
    let (current, heads, sequence, latest) = (
      keys.key(tag, "current"), keys.directoryHeads, keys.key(tag, "sequence"), keys.key(tag, "latest")
    )
    switch request {
    case .directories(let since):
      self.init(
        script: .directories, tag: tag, keys: [sequence, latest],
        arguments: [bytes(since), bytes(Cluster.Limits.directoriesPerRead)], reading: .directories)
    case .directoryHead(let scope):
      self.init(
        script: .directoryHead, tag: tag, keys: [current, heads], arguments: [bytes(scope)], reading: .directoryHead(scope))
    case .directoryParts(let names):
      var command = RESPCommand("MGET")
      for name in names { command.add(keys.directoryPart(name)) }
      self.init(plain: "directoryParts", tag: tag, command: command, reading: .directoryParts(names))
    case .stageDirectoryParts(let pieces):
      self.init(
        script: .stageParts, tag: tag, keys: pieces.map { keys.directoryPart($0.name) },
        arguments: [milliseconds(Cluster.Limits.staged)]
          + pieces.map { keys.sealed(lines: $0.content, at: keys.directoryPart($0.name)) }, reading: .done)
    case .commitDirectory(let commit):
      self.init(
        script: .commit, tag: tag,
        keys: [current, heads, sequence, latest, keys.key(tag, "dropped")] + commit.made.map(keys.directoryPart),
        arguments: [
          bytes(commit.scope), bytes(commit.expected), bytes(commit.version),
          keys.sealed(lines: commit.head, at: heads, field: commit.scope),
          milliseconds(Cluster.Limits.staged), bytes(Cluster.Limits.directories), bytes(UInt64.random(in: 1...(.max))),
        ] + commit.dropped.map(bytes), reading: .committed)
      // a repetition would find the version that the first attempt has committed
      mayRepeat = false
    case .expireDirectoryParts:
      self.init(
        script: .expireParts, tag: tag, keys: [keys.key(tag, "dropped")],
        arguments: [bytes(Cluster.Limits.partsPerExpiry), milliseconds(Cluster.Limits.staged), bytes(keys.directoryPart(""))],
        reading: .count)
    default: preconditionFailure("a request that is of no directory")
    }
  }
}
