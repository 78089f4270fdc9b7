extension Message {
  /// Values of X-Trunkline-Trunk, one for each field: the trunk from which an edge of ours received the request. A header of
  /// this project, in no RFC.
  public var trunklineTrunks: [String] { fields(.trunklineTrunk).map { text($0.value) } }
}
