<?php
// The entity manager of an application.
foreach (['ORM', 'DBAL', 'Persistence'] as $part) {
    require_once "/usr/share/php/Doctrine/$part/autoload.php";
}
require_once '/usr/share/php/Symfony/Component/Cache/autoload.php';
require getenv('TESTS') . '/../tap.php';

function manager()
{
    $config = Doctrine\ORM\ORMSetup::createAttributeMetadataConfiguration([getcwd()], true);
    $config->enableNativeLazyObjects(true);
    $config->setSchemaAssetsFilter(static fn ($name) => !str_starts_with((string) $name, 'snowflake_'));
    return new Doctrine\ORM\EntityManager(Doctrine\DBAL\DriverManager::getConnection([
        'driver' => 'pdo_pgsql', 'host' => getenv('PGHOST'), 'port' => getenv('PGPORT'),
        'dbname' => getenv('PGDATABASE'), 'user' => getenv('PGUSER'),
    ]), $config);
}
