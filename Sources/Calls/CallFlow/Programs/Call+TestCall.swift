import CallModel

extension Call {
  var isTest: Bool { trunk.name == Routing.testTrunk }
}
