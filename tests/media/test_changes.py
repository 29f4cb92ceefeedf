"""What a user may ask to be changed in media."""

import pytest

from mmprompt.errors import TaskError
from mmprompt.media.changes import Changes, changes_of


def test_what_is_not_asked_for_is_not_touched():
    assert changes_of({}) == Changes()
    assert changes_of({"fit": None, "frames": None}) == Changes()


def test_each_change_is_taken_in_its_own_type():
    asked = {
        "fit": True, "upright": True, "max_pixels": 1000, "max_side": 64, "mode": "RGB", "background": [1, 2, 3],
        "image_format": "png", "quality": 70, "audio_format": "mp3", "audio_rate": 16000, "mono": True, "start": 1,
        "seconds": 2, "frames": 8, "key_frames": True,
    }  # fmt: skip
    changes = changes_of(asked)
    assert changes.background == (1, 2, 3)
    assert (changes.start, changes.seconds) == (1.0, 2.0)
    assert changes_of({"times": [0, 1.5]}).times == (0, 1.5)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"max_sides": 3}, "max_side"),
        ({"max_side": 0}, "max_side is '0'"),
        ({"max_side": True}, "max_side is 'True'"),
        ({"max_pixels": "big"}, "max_pixels is 'big'"),
        ({"quality": 101}, "quality is '101'"),
        ({"audio_rate": 100}, "from 4000"),
        ({"fps": float("nan")}, "fps is 'nan'"),
        ({"fps": 0}, "fps is '0'"),
        ({"start": -1}, "start is '-1'"),
        ({"start": float("nan")}, "start is 'nan'"),
        ({"seconds": float("inf")}, "seconds is 'inf'"),
        ({"seconds": 0}, "seconds is '0'"),
        ({"frames": 1.5}, "frames is '1.5'"),
        ({"audio_rate": True}, "audio_rate is 'True'"),
        ({"audio_format": "ogg"}, "audio_format is 'ogg'"),
        ({"times": [-1]}, "list of seconds"),
        ({"fps": 1, "times": [1]}, "fps and times each choose"),
        ({"mode": "rgb"}, "RGB"),
        ({"image_format": "gif"}, "image_format"),
        ({"background": [1, 2]}, "red, green and blue"),
        ({"times": [1, "x"]}, "list of seconds"),
        ({"fit": 1}, "true or false"),
        ({"frames": 8, "times": [1.0]}, "times and frames each choose"),
        ({"key_frames": True, "fps": 1.0}, "fps and key_frames each choose"),
    ],
)
def test_a_wrong_value_is_named_with_its_mend(asked, said):
    with pytest.raises(TaskError) as caught:
        changes_of(asked)
    assert said in str(caught.value)
