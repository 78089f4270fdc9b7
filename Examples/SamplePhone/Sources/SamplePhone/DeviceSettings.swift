/// What the user sets on this device.
public struct DeviceSettings: Codable, Hashable, Sendable {
  /// Calls do not ring here; they do on the user's other devices.
  public var doesNotDisturb = false
  /// Which of the user's numbers callees see; empty: the first.
  public var callerNumber = ""
  public init() {}
}
