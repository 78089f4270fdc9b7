/// The app's control of its extensions, beside the store: whether they are enabled, which version iOS has loaded, and reloads.
///
/// ```swift
/// let failures = await extensions.reload().compactMap(\.failure)
/// if failures.contains(where: { $0.nextStep == .enable }) { try await extensions.openSettings() }  // behind a button
/// ```
public struct DirectoryExtensions: Sendable {
  /// The user's switch of an extension, in the system's settings.
  public enum Switch: Sendable, Equatable {
    /// iOS requests the extension's entries, and uses them.
    case on
    /// The user has not switched it on.
    case off
    /// iOS does not report it; ``Status/failure`` may give the reason.
    case unknown
  }
  /// The state of one extension.
  public struct Status: Sendable, Equatable {
    /// Its bundle identifier.
    public var identifier: String
    /// The state of its switch.
    public var position: Switch
    /// The version that iOS has loaded; nil: none, or unknown.
    public var loadedVersion: UInt64?
    /// Why the switch could not be read.
    public var failure: CallDirectoryFailure?
  }
  /// The result of one extension's load.
  public struct Reload: Sendable, Equatable {
    /// Its bundle identifier.
    public var identifier: String
    /// Why it failed; nil: iOS has all entries.
    public var failure: CallDirectoryFailure?
  }

  private let store: DirectoryStore
  /// Apple's class is not marked Sendable; it has no state of ours, and calls back on any queue.
  private struct Manager: @unchecked Sendable { let value: CXCallDirectoryManager }
  private let manager: Manager

  /// For the extensions of the store. `manager` is iOS's, or a test's.
  public init(_ store: DirectoryStore, manager: CXCallDirectoryManager = .sharedInstance) {
    (self.store, self.manager) = (store, Manager(value: manager))
  }

  /// The status of each extension, in the store's order.
  public func status() async -> [Status] {
    var all: [Status] = []
    for identifier in store.extensions {
      var status = Status(identifier: identifier, position: .unknown, loadedVersion: store.loadedVersion(identifier))
      (status.position, status.failure) = await withCheckedContinuation { continuation in
        manager.value.getEnabledStatusForExtension(withIdentifier: identifier) { enabled, error in
          // not a switch over cases: iOS may add more
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

  /// Requests iOS to load each extension, one after the other; one that fails does not stop the next. A file that the extension
  /// could not read is reported without a request to iOS. Cost: one pass over the files, and iOS's time, seconds for 10⁶ entries.
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
