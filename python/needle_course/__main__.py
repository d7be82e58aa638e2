"""`python -m needle_course`: the commands of `needle`."""

from needle_course.commands import main

if __name__ == "__main__":
    main()
