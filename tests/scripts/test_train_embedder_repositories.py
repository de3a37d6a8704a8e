"""The repositories whose commits were learnt from in trials."""

from scripts.train_embedder import packages

LISTED = packages.read(packages.HERE / "repositories.tsv")


def test_each_has_a_commit_and_a_permissive_licence_and_none_is_evaluated_on() -> None:
    assert len(LISTED) > 80
    assert [each for each in LISTED if len(each.version) != 40 or not packages.permissive(each.licence)] == []
    short = [each._replace(name=each.name.rpartition("/")[2]) for each in LISTED]
    assert packages.clashes(short, packages.kept_out()) == []
