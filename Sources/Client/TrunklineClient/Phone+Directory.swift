public import AppProtocol
import ClientMachines
import Dispatch
import Synchronization

/// The user's directory and history at the gateway.
extension Phone {
  /// From now on `take` hears each new version of the user's directory, for the app's call screen and its Call Directory extensions: all parts
  /// of the full directory, or of the difference to the version that the app has. At once if the gateway has another one, later when it changes,
  /// and after each login. On a queue of its own, one after the other; it may block. Nothing comes from a gateway that keeps no directories.
  ///
  /// - Parameters:
  ///   - version: what the app has already; nil: nothing, or it is damaged.
  ///   - of: the `of` of the parts of that version. Gateways of a cluster send the difference only to who says it, the full directory else.
  ///   - handler: all parts have the same `version`, `from` and `of`; nil in `from`: they are the full directory.
  public func followDirectory(
    from version: Int? = nil, of: String? = nil, _ handler: @escaping @Sendable ([DirectoryPart]) -> Void
  ) {
    let queue = DispatchQueue(label: "org.trunkline.directory")
    engine?.enqueue { engine in
      engine.directoryHandler = { parts in queue.async { handler(parts) } }
      engine.give(.followDirectory(have: version, of: of))
    }
  }

  /// A page of the user's calls over all devices, those that ended last first.
  ///
  /// - Parameters:
  ///   - before: `next` of the page before; nil: the first page.
  ///   - limit: 1 to 50 calls.
  /// - Throws: `PhoneError.notConnected` while the phone is not online, `PhoneError.gateway` with what the gateway says: it keeps no
  ///   history (`unsupported`), or try again.
  public func history(before: Int? = nil, limit: Int? = nil) async throws -> HistoryPage {
    try await ask(.histList(HistoryList(before: before, limit: limit))).hist ?? HistoryPage(calls: [])
  }

  /// What the user's directory calls these numbers (E.164 with +), of at most 64 those that it knows.
  ///
  /// - Throws: as ``history(before:limit:)``.
  public func names(of numbers: [String]) async throws -> [Handle] {
    try await ask(.histResolve(HistoryResolve(handles: Array(numbers.prefix(64))))).names ?? []
  }

  /// Names of the user's directory for what somebody types: those that have each of the words, or numbers that have these digits (three or more).
  ///
  /// - Parameters:
  ///   - text: at most 128 characters.
  ///   - limit: 1 to 50 names; nil: 20.
  /// - Throws: as ``history(before:limit:)``.
  public func names(like text: String, limit: Int? = nil) async throws -> [Handle] {
    try await ask(.dirFind(DirectoryFind(text: String(text.prefix(128)), limit: limit))).names ?? []
  }

  /// The user's own numbers (E.164 with +): the first is called from where `call` names none.
  ///
  /// - Throws: as ``history(before:limit:)``; `PhoneError.gateway` with `unsupported` by a gateway of before.
  public func ownNumbers() async throws -> [String] {
    try await ask(.userGet).user?.numbers ?? []
  }

  private func ask(_ message: ClientMessage) async throws -> Success {
    guard let engine else { throw PhoneError.secondPhone }
    let result: Result<Success, Failure>? = await withCheckedContinuation { continuation in
      engine.enqueue { engine in
        engine.read(message) { continuation.resume(returning: $0) }
      }
    }
    guard let result else { throw PhoneError.notConnected }
    do {
      return try result.get()
    } catch {
      throw PhoneError.gateway(error.code)
    }
  }
}
