import Cluster
import RESP

// Histories and directories.

extension SharedStoreCommand {
  init(ofHistory request: SharedStoreRequest, _ keys: SharedStoreKeys) {
    func key(_ user: String, _ rest: String) -> String { keys.key(SharedStoreKeys.user(user), rest) }
    switch request {
    case .addHistory(let call, let user, let row, let most, let keep):
      self.init(
        script: .addHistory, SharedStoreKeys.user(user), [key(user, "history"), key(user, "where")],
        [
          bytes(call.description), Array(keys.sealed([UInt8(ascii: "{")] + row, key(user, "history")).dropFirst()), bytes(most),
          milliseconds(keep),
        ], .added)
    case .history(let user, let before, let most, let keep):
      self.init(
        script: .history, SharedStoreKeys.user(user), [key(user, "history")],
        [bytes(before ?? 0), bytes(most), milliseconds(keep)], .history(user))
    case .forgetHistory(let user):
      self.init(script: .forgetHistory, SharedStoreKeys.user(user), [key(user, "history")], [], .count)
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
        script: .directories, tag, [sequence, latest], [bytes(since), bytes(Cluster.Limits.directoriesPerRead)], .directories)
    case .directoryHead(let scope):
      self.init(script: .directoryHead, tag, [current, heads], [bytes(scope)], .directoryHead(scope))
    case .directoryParts(let names):
      var command = RESPCommand("MGET")
      for name in names { command.add(keys.directoryPart(name)) }
      self.init(plain: "directoryParts", tag, command, .directoryParts(names))
    case .stageDirectoryParts(let pieces):
      self.init(
        script: .stageParts, tag, pieces.map { keys.directoryPart($0.name) },
        [milliseconds(Cluster.Limits.staged)]
          + pieces.map { keys.sealed(lines: $0.content, keys.directoryPart($0.name)) }, .done)
    case .commitDirectory(let commit):
      self.init(
        script: .commit, tag, [current, heads, sequence, latest] + (commit.made + commit.dropped).map(keys.directoryPart),
        [
          bytes(commit.scope), bytes(commit.expected), bytes(commit.version),
          keys.sealed(lines: commit.head, heads, commit.scope),
          bytes(commit.made.count), milliseconds(Cluster.Limits.staged), bytes(Cluster.Limits.directories),
          bytes(UInt64.random(in: 1...(.max))),
        ], .committed)
      // a repetition would find the version that the first attempt has committed
      mayRepeat = false
    default: preconditionFailure("a request that is of no directory")
    }
  }
}
