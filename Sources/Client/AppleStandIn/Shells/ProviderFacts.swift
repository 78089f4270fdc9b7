/// What the phone knows of an app's `CXProviderConfiguration`.
public struct ProviderFacts: Codable, Sendable, Equatable {
  public var maximumCallGroups = 2
  public var maximumCallsPerCallGroup = 5
  public var includesCallsInRecents = true
  /// Raw values of `CXHandle.HandleType` (R17).
  public var handleTypes: Set<Int> = []

  public init() {}
  init(_ configuration: CXProviderConfiguration) {
    (maximumCallGroups, includesCallsInRecents) = (configuration.maximumCallGroups, configuration.includesCallsInRecents)
    maximumCallsPerCallGroup = configuration.maximumCallsPerCallGroup
    handleTypes = Set(configuration.supportedHandleTypes.map(\.rawValue))
  }
}
