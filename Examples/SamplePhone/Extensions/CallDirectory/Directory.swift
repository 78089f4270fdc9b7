import TrunklineCallDirectory

/// Gives iOS the numbers that the app wrote. It has no network, and iOS never starts it for a call.
final class Directory: TrunklineCallDirectoryProvider {
  override var appGroup: String { "group.com.example.SamplePhone" }
}
