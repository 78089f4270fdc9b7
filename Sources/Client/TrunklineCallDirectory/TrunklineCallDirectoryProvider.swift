import Foundation

/// The principal class of a Call Directory extension. All there is to write:
///
/// ```swift
/// final class Directory: TrunklineCallDirectoryProvider {
///   override var appGroup: String { "group.com.example" }
/// }
/// ```
///
/// It reads the file that the app's `DirectoryStore` wrote for this extension's bundle identifier. It has no network, and iOS never starts it
/// for a call.
open class TrunklineCallDirectoryProvider: CXCallDirectoryProvider {
  /// Kept behind the request's end: a failure may come after the completion.
  private var loader: CallDirectoryLoader?
  /// A class of Apple's is not Sendable; iOS holds the provider, and ends its requests one after the other.
  private final class Listener: @unchecked Sendable {
    private(set) weak var provider: TrunklineCallDirectoryProvider?
    init(_ provider: TrunklineCallDirectoryProvider) { self.provider = provider }
  }

  /// The app group that app and extension share.
  open var appGroup: String { "" }
  /// This extension's name in the app's `DirectoryStore`.
  open var identifier: String { Bundle.main.bundleIdentifier ?? "" }
  /// Where the files are; for an app with its own idea of the container.
  open func folder() throws(DirectoryError) -> DirectoryFolder { try DirectoryFolder(appGroup: appGroup) }
  /// Hears how each request ended, on the thread that ended it. Nothing by default.
  open func ended(_ outcome: CallDirectoryLoader.Outcome) {}

  /// Loads the file, and completes or cancels the request. Called by iOS, on a thread of its own.
  open override func beginRequest(with context: CXCallDirectoryExtensionContext) {
    do throws(DirectoryError) {
      let listener = Listener(self)
      let loader = CallDirectoryLoader(folder: try folder(), identifier: identifier) { listener.provider?.ended($0) }
      self.loader = loader
      loader.load(into: context)
    } catch {
      let failure = CallDirectoryFailure(file: error)
      ended(.failure(failure))
      context.cancelRequest(withError: failure.bridged)
    }
  }
}
