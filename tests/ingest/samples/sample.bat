@echo off
rem Builds it.
set VERSION=1
call :build
goto :eof
:build
echo %VERSION%
