import Dispatch
import Synchronization
public import TrunklineAppProtocol
import TrunklineClientMachines

/// The user's directory and history at the gateway.
extension Phone {
  /// From now on `handler` gets each new version of the user's directory, for the app's call screen and its Call Directory
  /// extensions: all parts of the full directory, or of the difference to the app's version. It is called at once if the gateway
  /// has another version, later when that changes, and after each login. Calls come one after the other on a separate queue; the
  /// handler may block. A gateway without directories sends nothing.
  ///
  /// - Parameters:
  ///   - version: the version that the app has; nil: none, or it is damaged.
  ///   - of: the `of` of the parts of that version. Gateways of a cluster send the difference only to a client that sends it,
  ///     else the full directory.
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
  ///   - before: `next` of the previous page; nil: the first page.
  ///   - limit: 1 to 50 calls.
  /// - Throws: `PhoneError.notConnected` while the phone is not online, `PhoneError.gateway` with the gateway's reason: it keeps
  ///   no history (`unsupported`), or try again.
  public func history(before: Int? = nil, limit: Int? = nil) async throws -> HistoryPage {
    try await ask(.histList(HistoryList(before: before, limit: limit))).hist ?? HistoryPage(calls: [])
  }

  /// The directory's names of these numbers (E.164 with +), at most 64; unknown numbers are left out.
  ///
  /// - Throws: as ``history(before:limit:)``.
  public func names(of numbers: [String]) async throws -> [Handle] {
    try await ask(.histResolve(HistoryResolve(handles: Array(numbers.prefix(64))))).names ?? []
  }

  /// Names of the user's directory for a text that the user types: those with each of the words, or numbers with these digits
  /// (three or more).
  ///
  /// - Parameters:
  ///   - text: at most 128 characters.
  ///   - limit: 1 to 50 names; nil: 20.
  /// - Throws: as ``history(before:limit:)``.
  public func names(like text: String, limit: Int? = nil) async throws -> [Handle] {
    try await ask(.dirFind(DirectoryFind(text: String(text.prefix(128)), limit: limit))).names ?? []
  }

  /// The user's own numbers (E.164 with +). A call from `call` without a number uses the first.
  ///
  /// - Throws: as ``history(before:limit:)``; `PhoneError.gateway` with `unsupported` from an older gateway.
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
