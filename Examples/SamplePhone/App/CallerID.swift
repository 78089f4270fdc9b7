import Foundation
import Observation
import TrunklineCallDirectory

/// The app's half of caller ID and blocking: what the extension loads, and whether the user has switched it on.
@MainActor @Observable final class CallerID {
  private(set) var text = "not loaded"
  @ObservationIgnored private let extensions: DirectoryExtensions?
  @ObservationIgnored private let store: DirectoryStore?
  private static let appGroup = "group.com.example.SamplePhone"
  private static let identifier = "com.example.SamplePhone.CallDirectory"

  init() {
    store = try? DirectoryStore(folder: DirectoryFolder(appGroup: Self.appGroup), extensions: [Self.identifier])
    extensions = store.map { DirectoryExtensions($0) }
  }

  /// A real app's entries come from its server.
  nonisolated private static let entries = [
    PhoneNumber("+15557654321").map { DirectoryEntry($0, label: "Front desk") },
    PhoneNumber("+15550000666").map { DirectoryEntry($0, isBlocked: true) },
  ].compactMap { $0 }

  func load() async {
    guard let store, let extensions else { return text = "the app group is missing" }
    do {
      try await Task.detached { _ = try store.replace(with: Self.entries) }.value
    } catch {
      return text = "\(error)"
    }
    let failure = await extensions.reload().compactMap(\.failure).first
    text = failure.map { "\($0)" } ?? "loaded"
  }

  func openSettings() async {
    do throws(CallDirectoryFailure) { try await extensions?.openSettings() } catch { text = "\(error)" }
  }
}
