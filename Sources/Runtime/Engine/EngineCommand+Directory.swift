import Cluster
import RESP

// Histories and directories.

extension EngineCommand {
  init(ofHistory request: EngineRequest, _ keys: EngineKeys) {
    func key(_ user: String, _ rest: String) -> String { keys.key(EngineKeys.user(user), rest) }
    switch request {
    case .addHistory(let call, let user, let row, let most, let keep):
      self.init(
        script: .addHistory, EngineKeys.user(user), [key(user, "history"), key(user, "where")],
        [
          bytes(call.description), Array(keys.sealed([UInt8(ascii: "{")] + row, key(user, "history")).dropFirst()), bytes(most),
          milliseconds(keep),
        ], .added)
    case .history(let user, let before, let most, let keep):
      self.init(
        script: .history, EngineKeys.user(user), [key(user, "history")],
        [bytes(before ?? 0), bytes(most), milliseconds(keep)], .history(user))
    case .forgetHistory(let user):
      self.init(script: .forgetHistory, EngineKeys.user(user), [key(user, "history")], [], .count)
    default: preconditionFailure("a request that is of no history")
    }
  }

  init(ofDirectory request: EngineRequest, _ keys: EngineKeys) {
    let tag = EngineKeys.directories
    let (versions, state, order) = (keys.key(tag, "versions"), keys.key(tag, "state"), keys.key(tag, "order"))
    func key(_ rest: String, _ name: String) -> String { keys.key(tag, "\(rest):\(EngineKeys.escaped(name))") }
    switch request {
    case .directories(let since):
      self.init(
        script: .directories, tag, [versions, state, order], [bytes(since), bytes(Cluster.Limits.directoriesPerRead)],
        .directories)
    case .directory(let scope, let since, let skip):
      self.init(
        script: .changes, tag, [versions, key("changes", scope)],
        [bytes(scope), bytes(since), bytes(skip), bytes(Cluster.Limits.changesPerRead)],
        .directoryParts(hasHead: false))
    case .directoryPart(let scope, let part):
      self.init(
        script: .part, tag, [versions, key("parts", scope)], [bytes(scope), bytes(part)],
        .directoryParts(hasHead: true))
    case .stageDirectory(let name, let part, let content):
      self.init(
        script: .stage, tag, [key("staged", name)],
        [
          part.map { bytes($0) } ?? bytes("head"),
          keys.sealed(lines: content, keys.directoryParts, part == nil ? "head" : "part"), milliseconds(Cluster.Limits.staged),
        ], .done)
    case .commitDirectory(let commit):
      let scope = commit.scope
      self.init(
        script: .commit, tag, [versions, state, key("parts", scope), key("changes", scope), key("staged", commit.staged), order],
        [
          bytes(scope), bytes(commit.expected), bytes(commit.version), bytes(commit.parts),
          bytes(commit.form == .change ? "change" : "whole"), bytes(commit.isNew ? 1 : 0),
          bytes(Cluster.Limits.directoryChanges), bytes(Cluster.Limits.directoryChangesKept), bytes(Cluster.Limits.directories),
          bytes(commit.staged), bytes(commit.after),
        ], .committed)
      // who asks again meets its own version
      mayRepeat = false
    default: preconditionFailure("a request that is of no directory")
    }
  }
}
