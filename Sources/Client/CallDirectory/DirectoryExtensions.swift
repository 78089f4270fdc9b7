/// The app's half beside the store: are the extensions switched on, what has iOS taken, load again.
///
/// ```swift
/// let failures = await extensions.reload().compactMap(\.failure)
/// if failures.contains(where: { $0.nextStep == .enable }) { try await extensions.openSettings() }  // behind a button
/// ```
public struct DirectoryExtensions: Sendable {
  /// The user's switch of an extension, in the system's settings.
  public enum Switch: Sendable, Equatable {
    /// iOS asks the extension for its entries, and uses them.
    case on
    /// The user has not switched it on.
    case off
    /// iOS does not say; ``Status/failure`` may.
    case unknown
  }
  /// Where one extension stands.
  public struct Status: Sendable, Equatable {
    /// Its bundle identifier.
    public var identifier: String
    /// Where its switch stands.
    public var position: Switch
    /// What iOS has taken; nil: nothing, or it is not known.
    public var loadedVersion: UInt64?
    /// Why the switch could not be read.
    public var failure: CallDirectoryFailure?
  }
  /// What became of one extension's load.
  public struct Reload: Sendable, Equatable {
    /// Its bundle identifier.
    public var identifier: String
    /// Why it failed; nil: iOS has all entries.
    public var failure: CallDirectoryFailure?
  }

  private let store: DirectoryStore
  /// Apple's class is not said to be Sendable; it has no state of ours, and its callbacks come on any queue.
  private struct Manager: @unchecked Sendable { let value: CXCallDirectoryManager }
  private let manager: Manager

  /// For the extensions that the store names. `manager` is iOS's, or a test's.
  public init(_ store: DirectoryStore, manager: CXCallDirectoryManager = .sharedInstance) {
    (self.store, self.manager) = (store, Manager(value: manager))
  }

  /// Of each extension, in the store's order.
  public func status() async -> [Status] {
    var all: [Status] = []
    for identifier in store.extensions {
      var status = Status(identifier: identifier, position: .unknown, loadedVersion: store.loadedVersion(identifier))
      (status.position, status.failure) = await withCheckedContinuation { continuation in
        manager.value.getEnabledStatusForExtension(withIdentifier: identifier) { enabled, error in
          // not a switch over cases: iOS may have more of them tomorrow
          let position: Switch = enabled == .enabled ? .on : enabled == .disabled ? .off : .unknown
          continuation.resume(returning: (position, error.map { CallDirectoryFailure($0) }))
        }
      }
      all.append(status)
    }
    return all
  }

  /// Shows the system's settings of Call Directory extensions.
  public func openSettings() async throws(CallDirectoryFailure) {
    let failure = await withCheckedContinuation { (continuation: CheckedContinuation<CallDirectoryFailure?, Never>) in
      manager.value.openSettings { error in continuation.resume(returning: error.map { CallDirectoryFailure($0) }) }
    }
    if let failure { throw failure }
  }

  /// Lets iOS load each extension, one after the other; one that fails does not stop the next. A file that the extension could not read is
  /// reported without asking iOS. Cost: one pass over the files, and iOS's time, seconds for 10⁶ entries.
  public func reload() async -> [Reload] {
    var all: [Reload] = []
    for identifier in store.extensions { all.append(Reload(identifier: identifier, failure: await reload(identifier))) }
    return all
  }

  private func reload(_ identifier: String) async -> CallDirectoryFailure? {
    do throws(DirectoryError) {
      try store.verify(identifier)
    } catch {
      return CallDirectoryFailure(file: error)
    }
    return await withCheckedContinuation { continuation in
      manager.value.reloadExtension(withIdentifier: identifier) { error in
        continuation.resume(returning: error.map { CallDirectoryFailure($0) })
      }
    }
  }
}
