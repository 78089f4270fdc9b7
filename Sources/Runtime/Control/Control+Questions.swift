import AppSessions
import CallFlow
import CallModel
import Cluster
import GatewayCore
import TrunklineBytes
import TrunklinePlatform

/// Questions of other threads, a few in a step: `AnswerOutput.answered` returns each answer to the asker.
extension Control {
  /// A flood of small questions may use a part of the thread's time, and no more: beyond it they wait.
  func drainQuestions() {
    guard questionRate.has(Double(Limits.questionsPerStep), at: loop.now) else { return pauseQuestions() }
    inbox.questions.drain(into: &questions, limit: Limits.questionsPerStep)
    questionRate.spend(Double(questions.count), at: loop.now)
    for asked in questions { answer(asked.question, asked.id) }
    questions.removeAll(keepingCapacity: true)
  }

  /// Waiting questions would wake the loop over and over: their queue is not watched for a while.
  private func pauseQuestions() {
    if questionTimer == nil {
      questionTimer = loop.addTimer("questions") { [unowned self] in
        try? loop.modify(inbox.questions.event.fd, .readable)
      }
    }
    guard let questionTimer, (try? loop.modify(inbox.questions.event.fd, [])) != nil else { return }
    loop.setTimer(questionTimer, at: loop.now + Limits.questionPause)
  }

  private func answer(_ question: ControlQuestion, _ id: QuestionID) {
    let most = Limits.questionEntries
    let answer: ControlAnswer
    switch question {
    case .devices(let filter, let last): answer = .devices(core.machine.devicePage(filter, after: last, most: most))
    case .pushTargets(let user): answer = .pushTargets(core.machine.pushTargets(of: user))
    case .calls(let last): answer = .calls(core.callPage(after: last, most: most))
    case .call(let call): answer = .call(core.callRow(call))
    case .over(let call): answer = .over(core.machine.over(of: call))
    case .trunks(let index):
      answer = .trunks(core.machine.trunkPage(from: index, most: Limits.questionTrunks, at: loop.now))
    case .trunk(let name): answer = .trunk(core.machine.trunkStatus(name, at: loop.now))
    case .cluster(let part): answer = .cluster(sight(part))
    case .operation(let operation): return perform(operation, id)
    }
    outputs.answers.answered(id, answer)
  }

  /// If there are more nodes than fit into an answer, it holds those of the last second.
  private func sight(_ part: ClusterPart) -> ClusterSight? {
    let (most, now) = (Limits.questionEntries, loop.now)
    let isMany = core.cluster.map { $0.mostNodes > most } ?? false
    return core.cluster?.sight(part, most: most, nodes: isMany ? seenNodes : nil, at: now)
  }

  /// The call machine answers its own operations (`CallMachine.Action.answered`).
  private func perform(_ operation: ControlOperation, _ id: QuestionID) {
    switch operation {
    case .command(let call, let command): run(.call(.command(call, command, id)))
    case .originate(let wanted): run(.call(.originate(wanted, id)))
    case .revoke(let user, let device): run(.call(.devices(.revoke(user: user, device: device, id))))
    case .allow(let key): run(.call(.devices(.allow(key, id))))
    case .forget(let user): run(.call(.devices(.forget(user: user, id))))
    case .restoreGrants: run(.call(.restoreGrants(id)))
    case .setTrunk(let name, let isDisabled):
      let input = CallMachine.Input.setTrunk(name, isDisabled: isDisabled)
      log(input)
      run(.call(input))
      outputs.answers.answered(id, .operation(.done))
    case .forgetNode(let node):
      run(.cluster(.forget(node: node)))
      outputs.answers.answered(id, .operation(.done))
    }
  }
}
